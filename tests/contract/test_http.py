"""What every answer has in common: problems in one shape, request identifiers, headers, and nothing of the inside."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
import requests

from casino_brag.errors import MEANINGS, Code
from tests.running import CALL_SECONDS, Player, RunningService

JSON = {"Content-Type": "application/json"}
KEYED = JSON | {"Idempotency-Key": "a-key"}
SOMEBODY = KEYED | {"Authorization": "Bearer " + "A" * 43}
LARGE = b'{"ante_minor": 100' + b" " * 70_000 + b"}"
NO_ROUND = "/v1/rounds/00000000-0000-7000-8000-000000000000"

PROBLEMS: list[tuple[str, str, dict[str, str], bytes, Code]] = [
    ("GET", "/nothing", {}, b"", Code.NOT_FOUND),
    ("GET", "/v1/games/", {}, b"", Code.NOT_FOUND),
    ("GET", "/v1/games/of-nobody", {}, b"", Code.NOT_FOUND),
    ("GET", "/v1/games/%ff%fe", {}, b"", Code.NOT_FOUND),
    ("GET", "/v1/games/a%00b", {}, b"", Code.NOT_FOUND),
    ("GET", "/v1//games", {}, b"", Code.NOT_FOUND),
    ("GET", "/v1/rounds/one", {}, b"", Code.NOT_FOUND),
    ("PUT", "/v1/rounds", JSON, b"{}", Code.METHOD_NOT_ALLOWED),
    ("DELETE", "/v1/games", {}, b"", Code.METHOD_NOT_ALLOWED),
    ("TRACE", "/v1/session", {}, b"", Code.METHOD_NOT_ALLOWED),
    ("POST", "/v1/rounds", SOMEBODY, LARGE, Code.BODY_TOO_LARGE),
    ("POST", "/v1/rounds", SOMEBODY | {"Content-Type": "text/plain"}, b"{}", Code.UNSUPPORTED_MEDIA_TYPE),
    ("POST", "/v1/rounds", {"Idempotency-Key": "a-key"}, b"{}", Code.UNSUPPORTED_MEDIA_TYPE),
    ("POST", "/v1/rounds", SOMEBODY, b"", Code.MALFORMED_REQUEST),
    ("POST", "/v1/rounds", SOMEBODY, b'{"ante_minor": 100', Code.MALFORMED_REQUEST),
    ("POST", "/v1/rounds", SOMEBODY, b'{"ante_minor": 100} {}', Code.MALFORMED_REQUEST),
    ("POST", "/v1/rounds", SOMEBODY, b"\xef\xbb\xbf{}", Code.MALFORMED_REQUEST),
    ("POST", "/v1/rounds", SOMEBODY, b"[" * 20_000, Code.MALFORMED_REQUEST),
    ("POST", "/v1/rounds", SOMEBODY, b"[]", Code.INVALID),
    ("POST", "/v1/rounds", SOMEBODY, b"null", Code.INVALID),
    ("POST", "/v1/rounds", SOMEBODY, b'{"ante_minor": 100, "dealer": 1}', Code.INVALID),
    ("POST", "/v1/rounds", SOMEBODY, b'{"ante_minor": 100, "ante_minor": 100}', Code.INVALID),
    ("GET", "/v1/rounds?limit=none", SOMEBODY, b"", Code.INVALID),
    (
        "POST",
        "/v1/rounds",
        JSON | {"Authorization": SOMEBODY["Authorization"]},
        b'{"ante_minor": 100}',
        Code.IDEMPOTENCY_KEY_MISSING,
    ),
    ("GET", "/v1/session", {}, b"", Code.UNAUTHENTICATED),
    ("GET", "/v1/session", {"Authorization": "Basic " + "A" * 43}, b"", Code.UNAUTHENTICATED),
    ("GET", NO_ROUND, SOMEBODY, b"", Code.UNAUTHENTICATED),
    ("POST", "/v1/rounds", SOMEBODY, b'{"ante_minor": 100}', Code.UNAUTHENTICATED),
]
every_problem = pytest.mark.parametrize(
    ("method", "path", "headers", "body", "code"),
    PROBLEMS,
    ids=[
        f"{method} {path} {code.value} {number}" for number, (method, path, *_, code) in enumerate(PROBLEMS)
    ],
)


def call(
    service: RunningService, method: str, path: str, headers: dict[str, str], body: bytes = b""
) -> requests.Response:
    return requests.request(
        method, service.base + path, headers=headers, data=body, timeout=CALL_SECONDS, allow_redirects=False
    )


@every_problem
def test_an_error_is_a_problem_of_one_shape(
    service: RunningService, method: str, path: str, headers: dict[str, str], body: bytes, code: Code
) -> None:
    answer = call(service, method, path, headers, body)
    assert (answer.status_code, answer.headers["Content-Type"]) == (
        MEANINGS[code].status,
        "application/problem+json",
    )
    problem = answer.json()
    assert {name: value for name, value in problem.items() if name not in ("detail", "errors")} == {
        "type": f"/docs/problems#{code.value}",
        "title": MEANINGS[code].title,
        "status": answer.status_code,
        "code": code.value,
        "retryable": MEANINGS[code].retryable,
    }
    assert re.fullmatch(r"[A-Z].*\.", problem["detail"])
    assert set(problem) - {"errors"} == {"type", "title", "status", "detail", "code", "retryable"}
    assert ("WWW-Authenticate" in answer.headers) == (answer.status_code == 401)


def test_a_problem_names_the_fields_that_are_wrong(service: RunningService) -> None:
    body = b'{"ante_minor": "100", "pair_bonus_minor": -1, "payout_minor": 5}'
    problem = call(service, "POST", "/v1/rounds", SOMEBODY, body).json()
    assert set(problem["errors"]) == {"ante_minor", "pair_bonus_minor", "payout_minor"}
    assert all(isinstance(texts, list) and texts for texts in problem["errors"].values())


def test_a_method_that_an_address_does_not_take_is_told_those_it_takes(service: RunningService) -> None:
    allowed = call(service, "PUT", "/v1/rounds", {}).headers["Allow"]
    assert set(re.split(", *", allowed)) == {"GET", "HEAD", "OPTIONS", "POST"}
    asked = call(service, "OPTIONS", "/v1/rounds", {})
    assert set(re.split(", *", asked.headers["Allow"])) == {"GET", "HEAD", "OPTIONS", "POST"}
    assert (asked.status_code, asked.content) == (200, b"")


@pytest.mark.parametrize(
    "path", ["/v1/games", "/v1/session", "/healthz", "/docs", "/nothing", "/openapi.json"]
)
def test_head_answers_as_get_does_without_the_body(service: RunningService, path: str) -> None:
    get, head = (call(service, method, path, {}) for method in ("GET", "HEAD"))
    assert head.content == b""
    assert (head.status_code, head.headers["Content-Type"], head.headers["Content-Length"]) == (
        get.status_code,
        get.headers["Content-Type"],
        str(len(get.content)),
    )


@every_problem
def test_every_answer_carries_the_headers_that_keep_browsers_from_harm(
    service: RunningService, method: str, path: str, headers: dict[str, str], body: bytes, code: Code
) -> None:
    guarded(call(service, method, path, headers, body))


@pytest.mark.parametrize(
    "path", ["/v1/games", "/healthz", "/readyz", "/openapi.json", "/docs", "/docs/problems"]
)
def test_answers_that_are_no_errors_carry_them_too(service: RunningService, path: str) -> None:
    guarded(call(service, "GET", path, {}))
    guarded(call(service, "OPTIONS", path, {}))


def test_answers_to_players_carry_them_too(service: RunningService) -> None:
    player = service.operator().player()
    opened = player.open()
    for answer in (opened, player.decide(opened.json()["round_id"], "fold"), player.get("/v1/session")):
        guarded(answer)


def guarded(answer: requests.Response) -> None:
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none';")
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Strict-Transport-Security"].startswith("max-age=")
    assert "Set-Cookie" not in answer.headers
    assert not re.search(r"\d", answer.headers.get("Server", "")), "a version is nobody's business"
    assert "X-Powered-By" not in answer.headers


@pytest.mark.parametrize("given", ["x", "4f1c:trace/7", "A" * 128, "!\"#$%&'()*+,-./09:;<=>?@[]^_`{|}~"])
def test_a_request_identifier_is_repeated_and_logged(service: RunningService, given: str) -> None:
    for path in ("/healthz", "/nothing"):
        assert call(service, "GET", path, {"X-Request-ID": given}).headers["X-Request-ID"] == given
    assert json.dumps(given) in service.log()


@pytest.mark.parametrize("given", [None, "", "A" * 129, "two words", "\xe4\xf6\xfc", "a\tb"])
def test_a_request_without_a_fit_identifier_is_given_one(service: RunningService, given: str | None) -> None:
    headers = {} if given is None else {"X-Request-ID": given}
    made = [UUID(call(service, "GET", "/healthz", headers).headers["X-Request-ID"]) for _ in range(2)]
    assert [identifier.version for identifier in made] == [7, 7]
    assert made[0] < made[1]
    if given and given != "two words":
        assert given not in service.log()


def test_a_trace_is_followed_into_the_log(service: RunningService) -> None:
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    sent = {"traceparent": f"00-{trace}-{parent}-01", "X-Request-ID": "traced"}
    call(service, "GET", "/healthz", sent)
    call(service, "GET", "/healthz", {"traceparent": "00-not-a-trace-01", "X-Request-ID": "untraced"})
    lines = {line["request_id"]: line for line in logged(service) if line.get("event") == "request"}
    assert (lines["traced"]["trace_id"], lines["traced"]["parent_id"]) == (trace, parent)
    assert "trace_id" not in lines["untraced"]


def logged(service: RunningService) -> Iterator[dict[str, Any]]:
    for line in service.log().splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def raw(service: RunningService, request: bytes) -> tuple[int, bytes]:
    """The status and the whole text of the answer to these bytes, after which the service hangs up."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=CALL_SECONDS) as connection:
        connection.sendall(request)
        answer = b""
        while received := connection.recv(65_536):
            answer += received
    return int(answer.split(b" ", 2)[1]), answer


CLOSING = b"Host: localhost\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n" + CLOSING + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n" + CLOSING + b"X-A: " + b"a" * 5000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + CLOSING + b"X-A: a\r\n" * 100 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n" + CLOSING + b"X-A: a\x00b\r\n\r\n",
        b"POST /v1/rounds HTTP/1.1\r\n" + CLOSING + b"Content-Length: -5\r\n\r\n",
        b"POST /v1/rounds HTTP/1.1\r\n"
        + CLOSING
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"G<T /healthz HTTP/1.1\r\n" + CLOSING + b"\r\n",
        b"GET /healthz HTTP/9.1\r\n" + CLOSING + b"\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n",
    ],
    ids=[
        "long line",
        "long header",
        "many headers",
        "zero byte",
        "negative length",
        "two lengths",
        "method",
        "version",
        "TLS",
    ],
)
def test_what_is_no_http_is_refused_without_words_about_the_inside(
    service: RunningService, request_bytes: bytes
) -> None:
    status, answer = raw(service, request_bytes)
    assert 400 <= status < 500
    assert not re.search(rb"gunicorn|Traceback|\.py|[Pp]ython", answer.partition(b"\r\n\r\n")[2])


def chunked(body: bytes, *, end: bytes = b"0\r\n\r\n") -> bytes:
    token = SOMEBODY["Authorization"].encode()
    return (
        b"POST /v1/rounds HTTP/1.1\r\n"
        + CLOSING
        + b"Content-Type: application/json\r\nIdempotency-Key: a\r\n"
        b"Authorization: "
        + token
        + b"\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body)
        + body
        + b"\r\n"
        + end
    )


def test_a_body_in_chunks_is_read_like_any_other(service: RunningService) -> None:
    status, answer = raw(service, chunked(b'{"ante_minor": 100}'))
    assert (status, b'"unauthenticated"' in answer) == (401, True)


def test_chunks_that_are_none_are_the_callers_mistake(service: RunningService) -> None:
    status, answer = raw(service, chunked(b"{}", end=b"no number\r\n\r\n"))
    assert (status, b'"malformed_request"' in answer) == (400, True)


def test_a_caller_who_hangs_up_within_the_body_changes_nothing(service: RunningService) -> None:
    player = service.operator().player()
    head = (
        b"POST /v1/rounds HTTP/1.1\r\n"
        + CLOSING
        + b"Content-Type: application/json\r\nIdempotency-Key: half\r\n"
    )
    head += b"Authorization: Bearer " + player.token.encode() + b"\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=CALL_SECONDS) as connection:
        connection.sendall(head + b'{"ante_minor": 100}')
        connection.shutdown(socket.SHUT_WR)  # what was sent would do, but for its length
        answer = b"".join(iter(partial(connection.recv, 65536), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"malformed_request"' in answer
    assert player.get("/v1/rounds").json()["items"] == []


@pytest.mark.parametrize("key", ["k", "two words", "K" * 255, "~!{}"])
def test_an_idempotency_key_is_of_the_characters_that_the_document_names(
    service: RunningService, key: str
) -> None:
    document = requests.get(service.base + "/openapi.json", timeout=CALL_SECONDS).json()
    (shape,) = (
        one["schema"]
        for one in document["paths"]["/v1/rounds"]["post"]["parameters"]
        if one["in"] == "header"
    )
    documented = bool(re.search(shape["pattern"], key))
    assert (keyed(service.operator().player(), key) == 201) == documented


def keyed(player: Player, key: str) -> int:
    headers = player.headers() | {"Idempotency-Key": key}
    return requests.post(
        player.base + "/v1/rounds", json={"ante_minor": 100}, headers=headers, timeout=CALL_SECONDS
    ).status_code


@pytest.mark.parametrize(
    "name", ["a", "A-1_b.c@d", "a?b", "a#b", "a%41", "a+b", "a;b,c", "a/b", "/", ".", "..", "a/../b"]
)
def test_a_player_who_can_have_a_session_can_be_paid(service: RunningService, name: str) -> None:
    """A name that no address can carry is refused at once, not when money is to be moved."""
    operator = service.operator()
    opened = operator.open_session(player=name, mode="real")
    assert opened.status_code in (201, 422)
    if opened.status_code == 201:
        paid = operator.deposit(quote(name, safe=""), 100)
        assert (paid.status_code, paid.json().get("player")) == (201, name)
