"""When a request is wrong in several ways, the code that stands first is reported.

Each test climbs a ladder: a request that is wrong in every way at once, mended one way at a time.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import Any

import pytest
import requests

from casino_brag.catalogue.signing import signature
from casino_brag.errors import Code
from tests.catalogue.persons import GAME, revised
from tests.inprocess import AppHouse
from tests.running import CALL_SECONDS, Operator, Player, code_of

BROKEN = b'{"ante_minor": '
LARGE = BROKEN + b" " * 70_000


def post(base: str, path: str, body: Any, **headers: str | None) -> requests.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
    if isinstance(body, bytes):
        return requests.post(base + path, data=body, headers=named, timeout=CALL_SECONDS)
    return requests.post(base + path, json=body, headers=named, timeout=CALL_SECONDS)


def ascends(codes: Sequence[str]) -> None:
    """The ladder's codes stand in the order of precedence."""
    order = list(Code)
    places = [order.index(Code(code)) for code in codes]
    assert places == sorted(places), codes


def bearer(player: Player) -> str:
    return f"Bearer {player.token}"


def test_an_unread_body_is_judged_before_what_it_says(app_house: AppHouse) -> None:
    base = app_house.base
    rungs = [
        (post(base, "/v1/nothing", LARGE), "not_found"),
        (requests.put(base + "/v1/rounds", data=LARGE, timeout=CALL_SECONDS), "method_not_allowed"),
        (post(base, "/v1/rounds", LARGE), "body_too_large"),
        (post(base, "/v1/rounds", BROKEN), "unsupported_media_type"),
        (post(base, "/v1/rounds", BROKEN, Content_Type="application/json"), "malformed_request"),
        (post(base, "/v1/rounds", {"ante_minor": -1}), "invalid"),
    ]
    assert [code_of(answer) for answer, _ in rungs] == [code for _, code in rungs]
    ascends([code for _, code in rungs])


def test_the_ladder_of_opening_a_round(app_house: AppHouse) -> None:
    operator = app_house.new_operator()
    name = secrets.token_hex(6)
    assert operator.deposit(name, 1_000).status_code == 201
    ended, live = (operator.player(player=name, mode="real", game="double-play-brag") for _ in range(2))
    used = secrets.token_hex(8)
    first = post(
        app_house.base, "/v1/rounds", {"ante_minor": 5}, Authorization=bearer(live), Idempotency_Key=used
    )
    assert live.decide(first.json()["round_id"], "fold").status_code == 200
    session = ended.get("/v1/session").json()["session_id"]
    assert operator.send("DELETE", f"/v1/operator/sessions/{session}").status_code == 204

    def ask(body: dict[str, Any], token: str | None = None, key: str | None = None) -> requests.Response:
        return post(app_house.base, "/v1/rounds", body, Authorization=token, Idempotency_Key=key)

    def fresh() -> str:
        return secrets.token_hex(8)

    off = {"ante_minor": 7}
    codes = [
        code_of(ask({"ante_minor": 0})),
        code_of(ask(off)),
        code_of(ask(off, key=fresh())),
        code_of(ask(off, "Bearer " + "A" * 43, fresh())),
        code_of(ask(off, bearer(ended), used)),
    ]
    assert codes == [
        "invalid",
        "idempotency_key_missing",
        "unauthenticated",
        "unauthenticated",
        "idempotency_key_reused",
    ]
    with app_house.connect() as owner:
        owner.execute(
            "UPDATE game SET state = 'disabled', reason = 'for this test' WHERE game = 'double-play-brag'"
        )
        try:
            codes.append(code_of(ask(off, bearer(ended), fresh())))
            codes.append(code_of(ask(off, bearer(live), fresh())))
        finally:
            owner.execute("UPDATE game SET state = 'enabled', reason = NULL WHERE game = 'double-play-brag'")
    assert codes[-2:] == ["session_expired", "game_unavailable"]
    codes.append(code_of(ask({"ante_minor": 300_005, "pair_bonus_minor": 100_000}, bearer(live), fresh())))
    assert live.open(100).status_code == 201
    codes.append(code_of(ask({"ante_minor": 300_000, "pair_bonus_minor": 100_000}, bearer(live), fresh())))
    stale = {"ante_minor": 300_000, "commitment": "00" * 32}
    codes.append(code_of(ask(stale, bearer(live), fresh())))
    live.decide(live.get("/v1/session").json()["open_round"]["round_id"], "fold")
    codes.append(code_of(ask(stale, bearer(live), fresh())))
    codes.append(code_of(ask({"ante_minor": 300_000}, bearer(live), fresh())))
    assert codes[-5:] == [
        "stake_out_of_limits",
        "payout_limit_exceeded",
        "round_open",
        "commitment_stale",
        "insufficient_funds",
    ]
    ascends(codes)
    assert ask({"ante_minor": 100}, bearer(live), fresh()).status_code == 201


def test_the_ladder_of_a_decision(app_house: AppHouse) -> None:
    operator = app_house.new_operator()
    player = operator.real_player(150)
    used = secrets.token_hex(8)
    opened = player.open(100, key=used).json()["round_id"]
    nobodys = "00000000-0000-7000-8000-000000000000"

    def ask(
        round_id: str, decision: str, token: str | None = None, key: str | None = None
    ) -> requests.Response:
        path = f"/v1/rounds/{round_id}/decision"
        return post(app_house.base, path, {"decision": decision}, Authorization=token, Idempotency_Key=key)

    mine = bearer(player)
    codes = [
        code_of(ask("one", "wait")),
        code_of(ask(nobodys, "wait")),
        code_of(ask(nobodys, "play")),
        code_of(ask(nobodys, "play", key=used)),
        code_of(ask(nobodys, "play", mine, used)),
        code_of(ask(nobodys, "play", mine, used + "2")),
    ]
    assert codes[:4] == ["not_found", "invalid", "idempotency_key_missing", "unauthenticated"]
    assert codes[5] == "round_not_found"
    assert code_of(ask(opened, "play", mine, used + "3")) == "insufficient_funds"
    assert ask(opened, "fold", mine, used + "4").status_code == 200
    codes.append(code_of(ask(opened, "play", mine, used + "5")))
    assert codes[-1] == "already_decided"
    ascends(codes)


def test_the_ladder_of_a_proof(app_house: AppHouse) -> None:
    owner, stranger = (app_house.new_operator().player() for _ in range(2))
    waiting = owner.open(100).json()["round_id"]
    nobody = Player(app_house.base, "A" * 43)
    codes = [
        code_of(owner.get("/v1/rounds/one/proof")),
        code_of(nobody.proof(waiting)),
        code_of(stranger.proof(waiting)),
        code_of(owner.proof(waiting)),
    ]
    assert codes == ["not_found", "unauthenticated", "round_not_found", "proof_unavailable"]
    ascends(codes)
    assert owner.decide(waiting, "fold").status_code == 200
    assert owner.proof(waiting).status_code == 200


def test_the_ladder_of_a_call_of_staff(app_house: AppHouse) -> None:
    auditor, editor = app_house.staff("auditor"), app_house.staff("editor")
    nobody = Player(app_house.base, "cbs_" + "A" * 43)
    known = auditor.get("/v1/audit/entries?limit=1").json()["items"][0]["entry_id"]
    path = f"/v1/audit/proof/inclusion?entry_id={known}"
    codes = [
        code_of(nobody.get(path + "&size=0")),
        code_of(nobody.get(path)),
        code_of(editor.get(path)),
    ]
    assert codes == ["invalid", "unauthenticated", "forbidden"]
    ascends(codes)
    assert code_of(auditor.get(path + f"&size={2**62}")) == "not_found"


def test_the_ladder_of_a_change_to_a_draft(app_house: AppHouse) -> None:
    editor, auditor = app_house.staff("editor"), app_house.staff("auditor")
    begun = post(
        app_house.base, "/v1/paytables", {"game": GAME, "text": revised()}, Authorization=bearer(editor)
    )
    draft = begun.headers["Location"]
    written = {"text": revised()}

    def save(path: str, body: Any, token: str | None = None, match: str | None = None) -> requests.Response:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": token, "If-Match": match, "Content-Type": "application/json"}
        given = {name: value for name, value in headers.items() if value is not None}
        return requests.put(app_house.base + path, data=sent, headers=given, timeout=CALL_SECONDS)

    codes = [
        code_of(save(f"/v1/paytables/{GAME}/drafts/one", LARGE)),
        code_of(save(draft, LARGE)),
        code_of(save(draft, BROKEN)),
        code_of(save(draft, {"text": 1})),
        code_of(save(draft, written)),
        code_of(save(draft, written, bearer(auditor))),
        code_of(save(draft, written, bearer(editor))),
    ]
    assert codes == [
        *("not_found", "body_too_large", "malformed_request", "invalid", "unauthenticated", "forbidden"),
        "precondition_required",
    ]
    said = {"jurisdictions": ["none"], "note": "A test."}
    headers = {"Authorization": bearer(editor), "If_Match": "*"}
    other = post(app_house.base, "/v1/paytables", {"game": GAME, "text": "x"}, Authorization=bearer(editor))
    assert post(app_house.base, f"{draft}/submit", said, **headers).status_code == 200
    codes.append(code_of(save(draft, written, bearer(editor), '"0"')))
    codes.append(code_of(save(other.headers["Location"], written, bearer(editor), '"0"')))
    assert codes[-2:] == ["wrong_state", "precondition_failed"]
    ascends(codes)
    assert save(other.headers["Location"], written, bearer(editor), '"1"').status_code == 200


@pytest.mark.parametrize("direction", ["deposits", "withdrawals"])
def test_the_ladder_of_money_moved_by_an_operator(app_house: AppHouse, direction: str) -> None:
    operator = app_house.new_operator()
    path, odd = f"/v1/operator/players/p/{direction}", f"/v1/operator/players/%C3%A9/{direction}"
    good = {"amount_minor": 10, "currency": "GBP"}
    most = {"amount_minor": 2**53 - 1, "currency": "GBP"}
    key = secrets.token_hex(8)
    assert operator.deposit("p", 10, key=key).status_code == 201

    codes = [
        code_of(post(app_house.base, odd, {"amount_minor": 10, "currency": "??"})),
        code_of(post(app_house.base, odd, good)),
        code_of(post(app_house.base, path, good)),
        code_of(post(app_house.base, path, good, Idempotency_Key=key)),
        code_of(post(app_house.base, path, good, Idempotency_Key=key, **proof(operator, path, "v1=00"))),
    ]
    assert codes == ["invalid", "invalid", "idempotency_key_missing", "unauthenticated", "signature_invalid"]
    once = secrets.token_hex(16)
    headers = {"Idempotency-Key": key}
    assert operator.send("GET", "/v1/operator/players/p/balance?currency=GBP", nonce=once).status_code == 200
    codes.append(code_of(operator.send("POST", path, most, headers=headers, nonce=once)))
    codes.append(code_of(operator.send("POST", path, most, headers=headers)))
    codes.append(code_of(operator.send("POST", path, most, headers={"Idempotency-Key": key + "2"})))
    refused = "balance_limit_exceeded" if direction == "deposits" else "insufficient_funds"
    assert codes[-3:] == ["nonce_reused", "idempotency_key_reused", refused]
    ascends(codes)


def proof(operator: Operator, path: str, signed: str | None = None) -> dict[str, str]:
    stamp, nonce = str(int(time.time())), secrets.token_hex(16)
    return {
        "X_Operator": operator.name,
        "X_Key_Id": operator.key_id,
        "X_Timestamp": stamp,
        "X_Nonce": nonce,
        "X_Signature": signed or signature(operator.secret, "POST", path, stamp, nonce, b""),
    }


def test_a_forged_signature_uses_no_nonce_up(app_house: AppHouse) -> None:
    operator = app_house.new_operator()
    path, once = "/v1/operator/players/p/balance?currency=GBP", secrets.token_hex(16)
    forged = operator.send("GET", path, nonce=once, headers={"X-Signature": "v1=" + "0" * 64})
    assert code_of(forged) == "signature_invalid"
    assert operator.send("GET", path, nonce=once).status_code == 200
