"""Pages of operators' origins may call the player's API from a browser; no other page may call anything."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.inprocess import openapi_document
from tests.running import CALL_SECONDS, Operator, RunningService

PLAYERS_API = ["/v1/games", "/v1/games/three-card-brag", "/v1/session", "/v1/rounds"]
ELSEWHERE = ["/healthz", "/readyz", "/docs", "/openapi.json", "/v1/operator/sessions", "/v1/operator/nothing"]


@pytest.fixture(scope="module")
def origin(service: RunningService) -> str:
    """The registered origin of an operator that registered another one too."""
    registered = f"https://play-{secrets.token_hex(4)}.example.com"
    service.operator(None, "--origin", "http://localhost:5173", "--origin", registered)
    return registered


def allowances(answer: requests.Response) -> dict[str, str]:
    return {
        name.lower(): value
        for name, value in answer.headers.items()
        if name.lower().startswith("access-control-")
    }


def ask(service: RunningService, method: str, path: str, **headers: str) -> requests.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return requests.request(method, service.base + path, headers=named, timeout=CALL_SECONDS)


@pytest.mark.parametrize("path", PLAYERS_API)
def test_a_registered_origin_may_read_every_answer(service: RunningService, origin: str, path: str) -> None:
    answer = ask(service, "GET", path, Origin=origin)
    assert allowances(answer)["access-control-allow-origin"] == origin
    exposed = set(re.split(", *", allowances(answer)["access-control-expose-headers"].lower()))
    assert {"idempotency-replayed", "retry-after", "x-request-id"} <= exposed
    assert "access-control-allow-credentials" not in allowances(answer)


def test_several_origins_of_one_operator_are_all_registered(service: RunningService, origin: str) -> None:
    answer = ask(service, "GET", "/v1/games", Origin="http://localhost:5173")
    assert allowances(answer)["access-control-allow-origin"] == "http://localhost:5173"


@pytest.mark.parametrize("path", PLAYERS_API)
def test_a_preflight_admits_what_a_front_end_sends(service: RunningService, origin: str, path: str) -> None:
    answer = ask(
        service,
        "OPTIONS",
        path,
        Origin=origin,
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="authorization,content-type,idempotency-key",
    )
    assert answer.ok
    given = allowances(answer)
    assert given["access-control-allow-origin"] == origin
    admitted = set(re.split(", *", given["access-control-allow-headers"].lower()))
    assert needed_headers() | {"x-request-id", "traceparent"} <= admitted
    assert set(re.split(", *", given["access-control-allow-methods"])) >= needed_methods()
    assert 0 < int(given["access-control-max-age"]) <= 7200


def of_players() -> Iterator[tuple[str, dict[str, Any]]]:
    """What the document says of players' calls, and of those that anybody may make: method and operation each."""
    for path, item in openapi_document()["paths"].items():
        for method, operation in item.items():
            if not path.startswith("/v1/") or method == "parameters":
                continue
            proofs = operation.get("security", [])
            if not proofs or any("session" in proof for proof in proofs):
                yield method, operation


def needed_headers() -> set[str]:
    """What a player's front-end sends."""
    named = {
        parameter["name"].lower()
        for _, operation in of_players()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "header"
    }
    return named | {"authorization", "content-type"}


def needed_methods() -> set[str]:
    return {method.upper() for method, _ in of_players()}


@pytest.mark.parametrize(
    "near",
    [
        "https://elsewhere.example.com",
        "null",
        "*",
        "",
        "http{rest}",
        "{origin}:8443",
        "{origin}.evil.example",
        "{upper}",
        "{origin}/",
        "{origin}, {origin}",
        "https://" + "a" * 400,
    ],
)
def test_an_origin_that_is_not_registered_is_given_nothing(
    service: RunningService, origin: str, near: str
) -> None:
    other = near.format(origin=origin, rest=origin.removeprefix("https"), upper=origin.upper())
    for method in ("GET", "OPTIONS"):
        answer = ask(service, method, "/v1/games", Origin=other, Access_Control_Request_Method="GET")
        assert (answer.status_code, allowances(answer)) == (200, {})


def test_a_page_without_an_origin_is_no_page_of_an_operator(service: RunningService) -> None:
    assert allowances(ask(service, "GET", "/v1/games")) == {}


@pytest.mark.parametrize("path", ELSEWHERE)
def test_nothing_but_the_players_api_is_open_to_pages(
    service: RunningService, origin: str, path: str
) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        assert (
            allowances(ask(service, method, path, Origin=origin, Access_Control_Request_Method="POST")) == {}
        )


def test_a_signed_answer_is_no_page_s(service: RunningService, origin: str) -> None:
    operator: Operator = service.operator()
    answer = operator.send("GET", "/v1/operator/players/p/balance?currency=GBP", headers={"Origin": origin})
    assert (answer.status_code, allowances(answer)) == (200, {})


@pytest.mark.parametrize("path", PLAYERS_API)
def test_caches_are_told_that_answers_differ_by_origin(
    service: RunningService, origin: str, path: str
) -> None:
    for headers in ({}, {"Origin": origin}, {"Origin": "https://elsewhere.example.com"}):
        assert "Origin" in re.split(", *", ask(service, "GET", path, **headers).headers["Vary"])
