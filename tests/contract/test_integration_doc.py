"""docs/integration.md is followed as it stands: its shell lines in their order, its programs, its bodies and names."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import secrets
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from playwright.sync_api import Browser

from casino_brag.catalogue import webhooks
from casino_brag.catalogue.signing import ACCEPTED_SECONDS, signature
from casino_brag.conformance.kit import NAMES
from casino_brag.errors import Code
from casino_brag.sandbox.faults import Kind
from casino_brag.sandbox.messages import Direction, Reason, purse, transfer
from casino_brag.wallet import seamless
from casino_brag.wallet.seamless import Operation, Verdict, judged
from tests.chromium import run_in, window
from tests.inprocess import openapi_document
from tests.operators_wallet import insisted
from tests.running import Operator, Player, RunningService, free_port

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "integration.md").read_text(encoding="utf-8")

SERVERS: Final = {"casino-brag sandbox-wallet": 8090, "python3 wallet.py": 8091}
"""Commands that get a terminal of their own, and where what they start listens."""

SCRIPT_SECONDS: Final = 240
NEWS_SECONDS: Final = 60
END: Final = "\N{INFORMATION SEPARATOR TWO}"
"""Stands in the output after what each block has printed."""


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    fenced = re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    return [block for of, block in fenced if of == language]


def rows(heading: str) -> list[list[str]]:
    """The body of the table whose first cell is this."""
    table = DOCUMENT.split(f"\n| {heading} |", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


BACKEND, WALLET, RECEIVER = blocks("python")
DEBIT, CREDIT, BALANCE, NEWS = map(json.loads, blocks("json"))


class Listener(BaseHTTPRequestHandler):
    """An operator's webhook address; `heard` is what came, as headers and body."""

    heard: ClassVar[list[tuple[dict[str, str], bytes]]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.heard.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@dataclass(frozen=True)
class Afternoon:
    """The document as it was followed: what each shell block printed, and what stands and runs then."""

    base: str
    directory: Path
    printed: dict[str, str]
    pages_port: int
    heard: list[tuple[dict[str, str], bytes]]

    def said(self, words: str) -> str:
        """What the one block printed that has these words."""
        (found,) = [printed for block, printed in self.printed.items() if words in block]
        return found

    def answers(self, words: str) -> list[dict[str, Any]]:
        """The JSON objects in what a block printed."""
        decoder, text, found = json.JSONDecoder(), self.said(words), []
        while (start := text.find("{")) >= 0:
            value, end = decoder.raw_decode(text[start:])
            found.append(value)
            text = text[start + end :]
        return found

    def file(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.directory / name).read_text()))

    def operator(self) -> Operator:
        key = self.file("operator.json")
        return Operator(self.base, key["operator"], key["key_id"], key["secret"])

    def movements(self) -> list[tuple[str, int, str]]:
        """What the document's wallet has on record, as the document asks for it."""
        (query,) = blocks("sql")
        with closing(sqlite3.connect(self.directory / "wallet.sqlite3")) as books:
            return books.execute(query).fetchall()


@pytest.fixture(scope="module")
def afternoon(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Afternoon]:
    """Follows the document in an empty directory; ports differ, and the service is the one that runs."""
    directory, aside = tmp_path_factory.mktemp("afternoon"), tmp_path_factory.mktemp("aside")
    ports = {8080: service.port} | {port: free_port() for port in (5173, 8090, 8091, 8092)}
    (directory / "backend.py").write_text(moved(BACKEND, ports))
    (directory / "wallet.py").write_text(moved(WALLET, ports))
    shell = [block for block in blocks("sh") if block != "casino-brag serve\n"]
    script = aside / "script.sh"
    script.write_text(
        "set -eu -o pipefail\n" + "".join(moved(lines(block), ports) for block in shell) + "read -r _\n"
    )
    for name, command in (("casino-brag", " -P -m casino_brag"), ("python3", "")):
        (aside / name).write_text(f'#!/bin/sh\nexec {sys.executable}{command} "$@"\n')
        (aside / name).chmod(0o755)
    Listener.heard = []
    environment = os.environ | {
        "PATH": f"{aside}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CASINO_BRAG_DATA_DIR": str(service.data_dir),
    }
    with ThreadingHTTPServer(("127.0.0.1", ports[8092]), Listener) as news, (aside / "log").open("w+") as log:
        serving = threading.Thread(target=news.serve_forever)
        serving.start()
        running = subprocess.Popen(
            ["bash", str(script)],
            cwd=directory, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            printed = followed(running, aside / "log", len(shell))
            yield Afternoon(
                service.base, directory, dict(zip(shell, printed, strict=True)), ports[5173], Listener.heard
            )
        finally:
            os.killpg(running.pid, signal.SIGKILL)  # the shell, and the two wallets that it started
            running.communicate()
            news.shutdown()
            serving.join()
            if (directory / "webhook.json").exists():  # the service runs on, and nobody listens any more
                service.command("operator", "webhook", "example-casino", "--remove")


def moved(text: str, ports: dict[int, int]) -> str:
    """A text with other ports in the place of the document's."""
    return re.sub(r"\b(8080|8090|8091|8092|5173)\b", lambda found: str(ports[int(found[1])]), text)


def lines(block: str) -> str:
    """A block for the script: a server runs beside what follows, which waits until it listens."""
    for command, port in SERVERS.items():
        if block.startswith(command):
            waiting = f"until curl -s -o /dev/null http://127.0.0.1:{port}/; do sleep 0.1; done"
            block = f"{block.rstrip()} >/dev/null 2>&1 &\n{waiting}\n"
    return f"{block}printf '{END}'\n"


def followed(running: subprocess.Popen[bytes], log: Path, expected: int) -> list[str]:
    """What the blocks have printed, once all have."""
    deadline = time.monotonic() + SCRIPT_SECONDS
    while True:
        text = log.read_text(encoding="utf-8")
        if text.count(END) == expected:
            return text.split(END)[:expected]
        assert running.poll() is None, f"the script ended early:\n{text[-4000:]}"
        assert time.monotonic() < deadline, f"the script did not end in {SCRIPT_SECONDS} s:\n{text[-4000:]}"
        time.sleep(0.1)


def test_a_round_is_played_on_the_sandbox_wallet_and_both_sides_agree(afternoon: Afternoon) -> None:
    settled = afternoon.file("settled.json")
    assert (settled["state"], settled["decision"], settled["payout_state"]) == ("settled", "play", "paid")
    with (afternoon.directory / "statement.csv").open(newline="") as file:
        statement = list(csv.DictReader(file))
    assert [(line["direction"], line["wager"], line["state"]) for line in statement] == [
        ("debit", "ante", "done"),
        ("debit", "pair_bonus", "done"),
        ("debit", "play", "done"),
        ("credit", "payout", "done"),
    ]
    assert "Everything agrees. 4 lines of the statement were compared. 0 transactions are unfinished." in (
        afternoon.said("--statement statement.csv")
    )


def test_a_lost_answer_costs_nothing_and_the_repeat_deals(afternoon: Afternoon) -> None:
    words = "error_after"
    _, refused, settled = afternoon.answers(words)  # after what the wallet says of its faults
    assert refused["code"] == Code.WALLET_UNAVAILABLE
    assert settled["state"] == "settled"
    assert [line.split(",")[-2] for line in afternoon.said(words).splitlines()[-3:]] == [
        "cancelled",
        "done",
        "done",
    ]


def test_the_wallet_of_the_document_passes_every_check(afternoon: Afternoon) -> None:
    report = afternoon.said("wallet check")
    assert re.search(
        rf"^{len(NAMES)} checks: {len(NAMES) - 2} held, 0 failed, 2 not tried\.$", report, re.MULTILINE
    )
    assert re.findall(r"not tried +([a-z-]+):", report) == [
        "currency-with-three-decimals",
        "currency-with-eight-decimals",
    ]


def test_the_service_plays_on_the_wallet_of_the_document(afternoon: Afternoon) -> None:
    """The rounds of the document, the one with one debit included, are what the wallet's statement says."""
    (by_default,), (reserved,) = afternoon.answers("deal-3"), afternoon.answers("deal-4")
    assert by_default["state"] == reserved["state"] == "settled"
    known = {key: (state, amount) for key, amount, state in afternoon.movements()}
    asked = {
        round_id: [
            (one["wager"], one["amount_minor"], known[one["transaction_id"]])
            for one in afternoon.operator()
            .send("GET", f"/v1/operator/rounds/{round_id}")
            .json()["wallet_transactions"]
        ]
        for round_id in (by_default["round_id"], reserved["round_id"])
    }
    assert asked[by_default["round_id"]] == [("ante", 100, ("done", 100)), ("payout", 0, ("done", 0))]
    assert asked[reserved["round_id"]] == [("ante", 200, ("done", 200)), ("payout", 100, ("done", 100))]


def test_a_round_is_voided_and_a_game_closed_as_the_document_says(afternoon: Afternoon) -> None:
    (voided,) = afternoon.answers("/void")
    assert (voided["state"], voided["refund_minor"]) == ("voided", 100)
    drained, disabled, enabled, listed = afternoon.answers("/drain")
    assert [found["state"] for found in (drained, disabled, enabled)] == ["draining", "disabled", "enabled"]
    assert {found["state"] for found in listed["items"]} == {"enabled"}


def test_the_operator_is_told_and_can_check_that_it_was_us(afternoon: Afternoon) -> None:
    player = Player(afternoon.base, afternoon.file("session.json")["token"])
    # The round that was voided last may still be being paid.
    opened = insisted(lambda: player.open(100))[-1].json()
    settled = player.decide(opened["round_id"], "fold").json()
    expected = {"round.voided", "game.draining", "game.disabled", "game.enabled", "round.settled"}
    heard = told(afternoon, lambda kinds: expected <= set(kinds))
    namespace: dict[str, Any] = {}
    exec(RECEIVER, namespace)
    secret = afternoon.file("webhook.json")["secret"]
    for headers, body in afternoon.heard:
        assert namespace["is_genuine"](secret, headers, body)
        assert not namespace["is_genuine"](secret, headers, body + b" ")
        assert not namespace["is_genuine"]("whsec_" + "A" * 44, headers, body)
        assert not namespace["is_genuine"](secret, headers | {"webhook-timestamp": "1700000000"}, body)
    (news,) = [message for message in heard if message["data"].get("round_id") == settled["round_id"]]
    assert news["data"].keys() == NEWS["data"].keys()
    assert news.keys() == NEWS.keys()
    (voided,) = [message for message in heard if message["type"] == "round.voided"]
    assert {"refund_minor", "compensation_minor", "reason"} <= voided["data"].keys()


def told(afternoon: Afternoon, enough: Callable[[list[str]], bool]) -> list[dict[str, Any]]:
    """What the operator was told, once it is enough."""
    deadline = time.monotonic() + NEWS_SECONDS
    while True:
        heard = [json.loads(body) for _, body in afternoon.heard]
        if enough([message["type"] for message in heard]):
            return heard
        assert time.monotonic() < deadline, f"only {heard} were told in {NEWS_SECONDS} s"
        time.sleep(0.1)


def test_the_front_end_of_the_document_plays_in_a_browser(
    afternoon: Afternoon, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text('<!doctype html><link rel="icon" href="data:,">', encoding="utf-8")
    wanted = {"player": "p-1001", "currency": "GBP", "mode": "real", "game": "three-card-brag"}
    launch_url = afternoon.operator().send("POST", "/v1/operator/sessions", wanted).json()["launch_url"]
    (code,) = blocks("js")
    code = code.replace("http://127.0.0.1:8080", afternoon.base)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with (
        ThreadingHTTPServer(("127.0.0.1", afternoon.pages_port), handler) as pages,
        window(browser, refusals="status of 422") as page,
    ):
        serving = threading.Thread(target=pages.serve_forever)
        serving.start()
        try:
            page.goto(launch_url)
            settled = run_in(
                page, f'async () => {{ {code} return play({{ ante_minor: 100 }}, () => "fold"); }}'
            )
            refused = run_in(
                page,
                f"async () => {{ {code} return play({{ ante_minor: 3 }}, () => 'fold').catch((said) => said.code); }}",
            )
        finally:
            pages.shutdown()
            serving.join()
    assert (settled["state"], settled["decision"], settled["payout_state"]) == ("settled", "fold", "paid")
    assert refused == Code.STAKE_OUT_OF_LIMITS


def test_the_bodies_are_those_of_the_protocol() -> None:
    """As the sandbox wallet reads them, which is what the service sends."""
    debit, credit = transfer(Direction.DEBIT, DEBIT), transfer(Direction.CREDIT, CREDIT)
    assert debit.round_id == credit.round_id
    assert purse(BALANCE).player == debit.player
    assert {f"`{name}`" for name in DEBIT} == {name for name, _ in rows("member")}


def test_the_answers_are_definite() -> None:
    called = {"all four": list(Operation), "debit": [Operation.DEBIT], "cancel": [Operation.CANCEL]}
    answers = rows("answer")
    assert len(answers) == 3
    for answer, to, _ in answers:
        body = answer.strip("`").encode()
        (verdict,) = {judged(call, 200, body).verdict for call in called[to]}
        assert verdict is not Verdict.UNKNOWN
        assert verdict == json.loads(body)["status"]


def test_the_reasons_are_those_that_wallets_give() -> None:
    told = {reason.strip("`"): code for reason, _, code in rows("reason of a refused debit")}
    assert set(told) == set(Reason)
    named = {reason: code.strip("`") for reason, code in told.items() if code.startswith("`")}
    assert set(Reason) - set(named) == {Reason.CANCELLED}
    for reason, code in named.items():
        assert code == (reason if reason in set(Code) else Code.WALLET_REFUSED)


def test_the_signing_example_gives_the_printed_signature() -> None:
    body, signed, header, *_ = (block.rstrip("\n") for block in blocks("text"))
    method, path, timestamp, nonce, _ = signed.split("\n")
    found = re.search(r"the address\s+`([^`]+)`,\s+the\s+secret\s+`([^`]+)`", DOCUMENT)
    assert found
    address, secret = found.groups()
    assert f"{address}/debit".endswith(path)
    right = signature(secret, method, path, timestamp, nonce, body.encode())
    assert header == f"X-Signature: {right}"
    assert json.loads(body) == DEBIT
    assert signature(secret, method, path, timestamp, nonce, body.encode() + b" ") != right
    assert signed.endswith(hashlib.sha256(body.encode()).hexdigest())


def test_a_webhook_is_genuine_as_the_service_signs_it() -> None:
    namespace: dict[str, Any] = {}
    exec(RECEIVER, namespace)
    secret, sent, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", int(time.time()), secrets.token_bytes(40)
    both = f"v1,else {webhooks.sign(secret, 'm-1', sent, body)}"
    headers = {"webhook-id": "m-1", "webhook-timestamp": str(sent), "webhook-signature": both}
    assert namespace["is_genuine"](secret, headers, body)
    assert not namespace["is_genuine"](secret, headers | {"webhook-id": "m-2"}, body)


def test_every_refusal_of_a_deal_or_decision_that_is_not_a_mistake_is_in_the_table() -> None:
    told = {code.strip("`") for code, *_ in rows("code")}
    assert told <= set(Code)
    paths = openapi_document()["paths"]
    met = {
        code
        for path in ("/v1/rounds", "/v1/rounds/{round_id}/decision")
        for code in re.findall("`([a-z_]+)`", paths[path]["post"]["responses"]["409"]["description"])
    }
    assert met | {Code.TOO_SOON, Code.WALLET_UNAVAILABLE, Code.SESSION_EXPIRED} == told


def test_every_address_that_is_named_exists() -> None:
    paths = openapi_document()["paths"]
    named = re.findall(r"\b(GET|POST|DELETE) (/v1/[\w/{}().<>$ -]*[\w}])", DOCUMENT)
    assert len(named) > 5
    known = [
        (method.upper(), re.compile(re.sub(r"\{\w+\}", r"(\\$\\(.+\\)|[^/]+)", path)))
        for path, item in paths.items()
        for method in item
    ]
    lost = [
        (method, path)
        for method, path in named
        if not any(method == verb and form.fullmatch(path) for verb, form in known)
    ]
    assert lost == []


def test_the_kinds_of_fault_and_the_checks_that_are_named_exist() -> None:
    (sentence,) = re.findall(r"The other kinds of fault are(.*?)with a `reason`", DOCUMENT, re.DOTALL)
    assert {*re.findall("`([a-z_]+)`", sentence), Kind.ERROR_AFTER} == set(Kind)
    report = blocks("text")[-1]
    assert set(re.findall(r"(?:held|FAILED) +([a-z-]+):", report)) <= set(NAMES)
    assert "FAILED" in report


def test_the_times_are_those_of_the_program() -> None:
    for sentence in (
        f"does not answer in full within {seamless.ANSWER_SECONDS:g} s",
        f"leaves the wallet alone for {seamless.OPEN_SECONDS:g} s, later up to {seamless.OPEN_SECONDS_MAX:g} s",
        f"a timestamp more than {ACCEPTED_SECONDS} s from your clock",
        f"Answer 2xx within {webhooks.ANSWER_SECONDS:g} s",
    ):
        assert sentence in " ".join(DOCUMENT.split())
    assert (seamless.FAILURES_MAX, webhooks.LIFE.days) == (3, 3)
