"""Signed requests: whoever changes a word of one, or sends it late or twice, is not heard."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import replace
from typing import Any

import pytest
import requests

from casino_brag.catalogue.signing import signature
from tests.running import Operator, RunningService, code_of

WANTED = json.dumps({"amount_minor": 100, "currency": "GBP"}).encode()


def sent(
    operator: Operator,
    *,
    signed_as: dict[str, Any] | None = None,
    headers: dict[str, str | None] | None = None,
    path: str = "/v1/operator/players/ann/deposits",
) -> requests.Response:
    """A deposit whose signature is over something else where `signed_as` says so."""
    stamp, nonce = str(int(time.time())), secrets.token_hex(16)
    parts: dict[str, Any] = {
        "secret": operator.secret,
        "method": "POST",
        "path": path,
        "timestamp": stamp,
        "nonce": nonce,
        "body": WANTED,
    }
    given: dict[str, str | None] = {
        "X-Operator": operator.name,
        "X-Key-Id": operator.key_id,
        "X-Timestamp": stamp,
        "X-Nonce": nonce,
        "X-Signature": signature(**(parts | (signed_as or {}))),
        "Content-Type": "application/json",
        "Idempotency-Key": secrets.token_hex(8),
    }
    kept = {name: value for name, value in (given | (headers or {})).items() if value is not None}
    return requests.post(operator.base + path, WANTED, headers=kept, timeout=10)


@pytest.fixture(scope="module")
def signer(service: RunningService) -> Operator:
    """An operator whose one player must not get a penny but where a test says so."""
    return service.operator()


def balance_minor(operator: Operator) -> int:
    answer = operator.send("GET", "/v1/operator/players/ann/balance?currency=GBP")
    return int(answer.json()["balance_minor"])


@pytest.mark.parametrize(
    "signed_as",
    [
        {"secret": "sk_" + "A" * 43},
        {"secret": ""},
        {"method": "PUT"},
        {"method": "post"},
        {"path": "/v1/operator/players/bob/deposits"},
        {"path": "/v1/operator/players/ann/withdrawals"},
        {"path": "/v1/operator/players/ann/deposits?"},
        {"path": "/v1/operator/players/ann/deposits?currency=GBP"},
        {"timestamp": "1700000000"},
        {"nonce": "0123456789abcdef"},
        {"body": b""},
        {"body": WANTED + b" "},
        {"body": WANTED.replace(b"100", b"101")},
    ],
    ids=lambda signed_as: str(*signed_as.items()),
)
def test_a_request_that_is_not_what_was_signed_is_refused(
    signer: Operator, signed_as: dict[str, Any]
) -> None:
    before = balance_minor(signer)
    assert code_of(sent(signer, signed_as=signed_as)) == "signature_invalid"
    assert balance_minor(signer) == before


def test_a_query_is_signed_in_the_order_it_is_sent_in(signer: Operator) -> None:
    signed = "/v1/operator/players/ann/balance?currency=GBP"
    for changed in (signed.replace("GBP", "EUR"), signed + "&", signed.partition("?")[0], signed + "&a=b"):
        stamp, nonce = str(int(time.time())), secrets.token_hex(16)
        headers = {
            "X-Operator": signer.name,
            "X-Key-Id": signer.key_id,
            "X-Timestamp": stamp,
            "X-Nonce": nonce,
            "X-Signature": signature(signer.secret, "GET", signed, stamp, nonce, b""),
        }
        answer = requests.get(signer.base + changed, headers=headers, timeout=10)
        assert code_of(answer) in {"signature_invalid", "invalid"}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"X-Operator": None}, "unauthenticated"),
        ({"X-Operator": "nobody"}, "unauthenticated"),
        ({"X-Operator": "demo"}, "unauthenticated"),
        ({"X-Operator": "a b"}, "unauthenticated"),
        ({"X-Key-Id": None}, "unauthenticated"),
        ({"X-Key-Id": "k_000000000000"}, "unauthenticated"),
        ({"X-Timestamp": None}, "unauthenticated"),
        ({"X-Timestamp": ""}, "unauthenticated"),
        ({"X-Timestamp": "-1"}, "unauthenticated"),
        ({"X-Timestamp": "1e9"}, "unauthenticated"),
        ({"X-Timestamp": "1" * 40}, "unauthenticated"),
        ({"X-Nonce": None}, "unauthenticated"),
        ({"X-Nonce": "short"}, "unauthenticated"),
        ({"X-Nonce": "n" * 65}, "unauthenticated"),
        ({"X-Nonce": "n" * 64}, "signature_invalid"),
        ({"X-Signature": None}, "signature_invalid"),
        ({"X-Signature": "v1="}, "signature_invalid"),
        ({"X-Signature": "v2=" + "0" * 64}, "signature_invalid"),
        ({"X-Signature": "\xff" * 67}, "signature_invalid"),
    ],
)
def test_a_proof_that_is_none_is_refused(signer: Operator, headers: dict[str, str | None], code: str) -> None:
    before = balance_minor(signer)
    assert code_of(sent(signer, headers=headers)) == code
    assert balance_minor(signer) == before


def test_another_operators_key_does_not_serve(signer: Operator, other_operator: Operator) -> None:
    for stranger in (
        replace(signer, key_id=other_operator.key_id, secret=other_operator.secret),
        replace(signer, secret=other_operator.secret),
        replace(signer, key_id=other_operator.key_id),
    ):
        assert code_of(stranger.deposit("ann", 100)) in {"unauthenticated", "signature_invalid"}
    assert balance_minor(other_operator) == 0


@pytest.mark.parametrize(("seconds", "served"), [(-295, True), (295, True), (-301, False), (302, False)])
def test_a_request_is_heard_within_five_minutes_either_way(
    signer: Operator, seconds: int, served: bool
) -> None:
    path = "/v1/operator/players/ann/balance?currency=GBP"
    answer = signer.send("GET", path, timestamp=int(time.time()) + seconds)
    if served:
        assert answer.status_code == 200
    else:
        assert code_of(answer) == "signature_invalid"
        assert "300 s" in answer.json()["detail"]


@pytest.mark.parametrize("timestamp", [1, 10**11, 253_402_300_800, 10**12 - 1])
def test_a_time_of_another_age_is_refused_even_when_it_is_signed(signer: Operator, timestamp: int) -> None:
    path = "/v1/operator/players/ann/balance?currency=GBP"
    assert code_of(signer.send("GET", path, timestamp=timestamp)) == "signature_invalid"


def test_a_request_sent_twice_is_heard_once(signer: Operator) -> None:
    before, nonce = balance_minor(signer), secrets.token_hex(16)
    wanted = {"amount_minor": 100, "currency": "GBP"}
    path = "/v1/operator/players/ann/deposits"
    for key, served in (("a", True), ("a", False), ("b", False)):
        answer = signer.send("POST", path, wanted, headers={"Idempotency-Key": key}, nonce=nonce)
        if served:
            assert answer.status_code == 201
        else:
            assert code_of(answer) == "nonce_reused"
    assert balance_minor(signer) == before + 100


def test_a_nonce_is_used_up_only_by_its_operator(signer: Operator, other_operator: Operator) -> None:
    nonce, path = secrets.token_hex(16), "/v1/operator/players/ann/balance?currency=GBP"
    forged = replace(signer, secret="sk_" + "A" * 43)
    assert code_of(forged.send("GET", path, nonce=nonce)) == "signature_invalid"
    assert other_operator.send("GET", path, nonce=nonce).status_code == 200
    assert signer.send("GET", path, nonce=nonce).status_code == 200


def test_two_keys_are_live_and_a_third_ends_the_first(service: RunningService) -> None:
    first = service.operator()

    def rotated() -> Operator:
        made = json.loads(service.command("operator", "rotate-key", first.name, "--json"))
        return Operator(first.base, made["operator"], made["key_id"], made["secret"])

    second = rotated()
    assert [key.deposit("ann", 100).status_code for key in (first, second)] == [201, 201]
    third = rotated()
    assert code_of(first.deposit("ann", 100)) == "unauthenticated"
    assert [key.deposit("ann", 100).status_code for key in (second, third)] == [201, 201]
    assert balance_minor(third) == 400
