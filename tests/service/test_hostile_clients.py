"""Clients who fall silent, send what is no request, or take a key to another purse; a database that freezes."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from casino_brag.db.pool import ANSWER_SECONDS
from casino_brag.web.draining import CLIENT_SECONDS
from tests.running import RunningService, code_of


def raw(service: RunningService, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(sent)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /v1/session HTTP/1.1\r\nHost: x\r\nAuthorization Bearer SECRET\r\n\r\n",
        b"GET /v1/session HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer\r\n SECRET\r\n\r\n",
        b"SECRET\r\n\r\n",
        b"POST /v1/rounds HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: SECRET\r\n\r\n",
    ],
)
def test_what_is_no_request_is_neither_repeated_nor_logged(
    service: RunningService, request_line: bytes
) -> None:
    secret = secrets.token_hex(16).encode()
    head, _, body = raw(service, request_line.replace(b"SECRET", secret)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Type: application/problem+json" in head
    assert b'"malformed_request"' in body
    assert secret not in head + body
    assert secret.decode() not in service.log()


def test_no_header_says_which_part_of_the_path_is_ours(service: RunningService) -> None:
    sent = b"GET /healthz HTTP/1.1\r\nHost: x\r\nSCRIPT_NAME: /healthz\r\nConnection: close\r\n\r\n"
    assert b'"status":"ok"' in raw(service, sent)


@pytest.mark.parametrize("half_sent", [b"", b"Content-Length: 20\r\n\r\n{"], ids=["headers", "body"])
def test_clients_who_fall_silent_stop_nobody_for_long(own_service: RunningService, half_sent: bytes) -> None:
    halves = [
        socket.create_connection(("127.0.0.1", own_service.port), timeout=10)
        for _ in range(20)  # more than there are threads
    ]
    try:
        for half in halves:
            half.sendall(b"POST /v1/rounds HTTP/1.1\r\nHost: x\r\n" + half_sent)
        began = time.monotonic()
        answer = requests.get(own_service.base + "/healthz", timeout=8 * CLIENT_SECONDS)
        assert answer.status_code == 200
        assert time.monotonic() - began < 8 * CLIENT_SECONDS
    finally:
        for half in halves:
            half.close()
    assert "Traceback" not in own_service.log()


def test_a_key_of_one_purse_does_not_serve_in_another(service: RunningService) -> None:
    operator = service.operator()
    name = secrets.token_hex(6)
    operator.deposit(name, 1_000)
    operator.deposit(name, 1_000, "EUR")
    demo = operator.player(player=name)
    pounds, euros = (operator.player(player=name, mode="real", currency=code) for code in ("GBP", "EUR"))
    opened = demo.open(100, key="same")
    assert opened.status_code == 201
    for session in (pounds, euros):
        assert code_of(session.open(100, key="same")) == "idempotency_key_reused"
        assert session.balance_minor() == 1_000
    assert demo.decide(opened.json()["round_id"], "fold", key="end").status_code == 200
    assert code_of(pounds.decide(opened.json()["round_id"], "fold", key="end")) == "idempotency_key_reused"


def test_no_round_is_opened_on_a_session_after_it_is_ended(service: RunningService) -> None:
    operator = service.operator()
    player = operator.player()
    session_id = player.get("/v1/session").json()["session_id"]
    with ThreadPoolExecutor(2) as pool:
        with service.held_up(player) as wait_for:
            opening = pool.submit(player.open, 100)
            wait_for(1)
            ending = pool.submit(operator.send, "DELETE", f"/v1/operator/sessions/{session_id}")
            wait_for(2)
            assert not ending.done()
        assert {opening.result().status_code, ending.result().status_code} <= {201, 204, 401}
    with service.connect() as conn:
        steps = conn.execute(
            "SELECT type FROM audit_entry WHERE session_id = %s ORDER BY entry_id", [session_id]
        ).fetchall()
        rounds = conn.execute("SELECT count(*) FROM round WHERE session_id = %s", [session_id]).fetchone()
    assert ("session.closed",) in steps
    assert rounds == (1 if opening.result().status_code == 201 else 0,)
    assert code_of(player.open(100)) == "session_expired"


def test_a_frozen_database_is_waited_for_within_bounds(own_service: RunningService) -> None:
    service = own_service
    player = service.operator().player()
    assert (
        player.get("/v1/session").status_code == 200
    )  # so that this worker has a connection that will freeze
    postmaster = int((service.data_dir / "postgres" / "postmaster.pid").read_text().partition("\n")[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    frozen = [postmaster, *map(int, children)]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        answer = player.open(100, key="k")
        waited = time.monotonic() - began
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    assert (answer.status_code, code_of(answer)) == (503, "database_unavailable")
    assert waited < ANSWER_SECONDS + 8
    deadline = time.monotonic() + 20
    while (again := player.open(100, key="k")).status_code != 201:
        assert time.monotonic() < deadline, again.text
        time.sleep(0.2)
    assert len(player.get("/v1/rounds").json()["items"]) == 1
    assert service.broken_laws() == {}
