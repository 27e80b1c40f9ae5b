"""The wallet over HTTP: four signed calls, and a desk behind the counter that is not signed."""

from __future__ import annotations

import csv
import io
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from flask import Flask, Response, request
from flask.typing import ResponseReturnValue

from casino_brag.catalogue.signing import ACCEPTED_SECONDS, matches, signature
from casino_brag.errors import Code, ServiceError, SetUpError
from casino_brag.sandbox.faults import GARBAGE, Faults, Step, Strike, read_rules
from casino_brag.sandbox.messages import (
    AMOUNT,
    CURRENCY,
    PURSE,
    Answer,
    Direction,
    Purse,
    Transfer,
    checked,
    purse,
    transfer,
)
from casino_brag.sandbox.store import STATEMENT_COLUMNS, Ledger, Store
from casino_brag.web.api import strict_json

BODY_BYTES_MAX: Final = 64 * 1024

_SIGNING_HEADERS: Final = {
    "X-Operator": re.compile(r"[\x21-\x7e]{1,64}"),
    "X-Key-Id": re.compile(r"[\x21-\x7e]{1,64}"),
    "X-Timestamp": re.compile(r"[0-9]{1,12}"),
    "X-Nonce": re.compile(r"[\x21-\x7e]{16,64}"),
    "X-Signature": re.compile(r"v1=[0-9a-f]{64}"),
}


def read_keys(file: Path) -> Mapping[str, str]:
    """The secrets by key id of a file of lines ``KEY_ID:SECRET``; empty lines and those with ``#`` are no keys.

    `SetUpError` when the file cannot be read or a line is something else.
    """
    keys: dict[str, str] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        raise SetUpError(f"The keys in {file} cannot be read: {failure}.") from failure
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        key_id, _, secret = line.strip().partition(":")
        if not key_id or not secret:
            raise SetUpError(f"Line {number} of {file} is no key: write KEY_ID:SECRET.")
        keys[key_id] = secret
    return keys


@dataclass(frozen=True, slots=True)
class Wallet:
    """What the application works with.

    `keys` is asked at every call, so that keys can be changed at any time; `operator` is whom a call has to name,
    anybody if None; `stopping` ends all waits.
    """

    store: Store
    faults: Faults
    keys: Callable[[], Mapping[str, str]]
    operator: str | None
    stopping: threading.Event


def create_app(wallet: Wallet) -> Flask:
    """The application that serves a wallet."""
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = BODY_BYTES_MAX
    app.register_error_handler(ServiceError, _problem)
    app.register_error_handler(sqlite3.OperationalError, _unwritable)
    for operation in _CALLS:
        app.add_url_rule(f"/{operation}", operation, _Call(wallet, operation), methods=["POST"])
    _add_desk(app, wallet)
    return app


def _problem(error: ServiceError) -> ResponseReturnValue:
    return {"code": error.code, "detail": error.detail, "errors": error.errors or {}}, error.meaning.status


def _unwritable(_: sqlite3.OperationalError) -> ResponseReturnValue:
    return _problem(ServiceError(Code.DATABASE_UNAVAILABLE, "The wallet's file cannot be used now."))


# The four calls


@dataclass(frozen=True, slots=True)
class _Once:
    """What lets a signed request in once: its key, its nonce, and until when that has to be remembered."""

    key_id: str
    nonce: str
    until: int


def _signed(keys: Mapping[str, str], operator: str | None) -> _Once:
    """Who called is who holds a key's secret, now, about this very body.

    Raises `ServiceError`: unauthenticated and signature_invalid, both HTTP 401.
    """
    sent = {name: request.headers.get(name, "") for name in _SIGNING_HEADERS}
    for name, pattern in _SIGNING_HEADERS.items():
        if not pattern.fullmatch(sent[name]):
            raise ServiceError(Code.UNAUTHENTICATED, f"The header {name} is missing or malformed.")
    secret = keys.get(sent["X-Key-Id"])
    if secret is None or operator not in (None, sent["X-Operator"]):
        raise ServiceError(Code.UNAUTHENTICATED, "There is no such operator or key here.")
    # The path as it was sent, before anybody decoded it: that is what the caller signed.
    path = str(request.environ["REQUEST_URI"])
    expected = signature(
        secret, request.method, path, sent["X-Timestamp"], sent["X-Nonce"], request.get_data()
    )
    if not matches(sent["X-Signature"], expected):
        raise ServiceError(Code.SIGNATURE_INVALID, "The signature is of another request or secret.")
    timestamp = int(sent["X-Timestamp"])
    if abs(time.time() - timestamp) > ACCEPTED_SECONDS:
        raise ServiceError(Code.SIGNATURE_INVALID, f"The timestamp is over {ACCEPTED_SECONDS} s away.")
    return _Once(sent["X-Key-Id"], sent["X-Nonce"], timestamp + ACCEPTED_SECONDS + 1)


_CALLS: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Ledger, Any, str | None], Answer]]]] = {
    "debit": (partial(transfer, Direction.DEBIT), Ledger.debit),
    "credit": (partial(transfer, Direction.CREDIT), Ledger.credit),
    "cancel": (partial(transfer, Direction.DEBIT), Ledger.cancel),
    "balance": (purse, Ledger.balance),
}
"""How each call is read, and what it does to the books."""


class _Call:
    """The view of one of the four calls: who calls, what is asked, what is to go wrong with it, and then that."""

    def __init__(self, wallet: Wallet, operation: str) -> None:
        self._wallet = wallet
        self._operation = operation
        self._read, self._carry_out = _CALLS[operation]

    def __call__(self) -> ResponseReturnValue:
        once = _signed(self._wallet.keys(), self._wallet.operator)
        message = self._read(strict_json.loads(request.get_data()))
        wager = message.wager if isinstance(message, Transfer) else None
        strike = self._wallet.faults.strike(self._operation, message.player, wager)
        if strike is None:
            return self._do(once, message).document()
        return self._go_wrong(once, message, strike)

    def _do(self, once: _Once, message: Any, refusal: str | None = None) -> Answer:
        with self._wallet.store.transaction() as ledger:
            if not ledger.take_nonce(once.key_id, once.nonce, once.until):
                raise ServiceError(
                    Code.NONCE_REUSED, "This nonce was used before. Sign again with a new one."
                )
            return self._carry_out(ledger, message, refusal)

    def _go_wrong(self, once: _Once, message: Any, strike: Strike) -> ResponseReturnValue:
        outcome: Answer | None = None
        for step in strike.rule.course:
            match step:
                case Step.WAIT:
                    if self._wallet.stopping.wait(strike.rule.seconds):
                        return _hang_up()
                case Step.DO:
                    outcome = self._do(once, message)
                case Step.REFUSE:
                    outcome = self._do(once, message, strike.rule.reason)
                case Step.ANSWER:
                    assert outcome is not None, "a course answers what it has done"
                    return outcome.document()
                case Step.GARBAGE:
                    return Response(GARBAGE[strike.number % len(GARBAGE)], mimetype="application/json")
                case Step.FAIL:
                    return _problem(ServiceError(Code.INTERNAL_ERROR, "This fault was asked for."))
                case Step.UNAVAILABLE:
                    return _problem(ServiceError(Code.DATABASE_UNAVAILABLE, "This fault was asked for."))
        return _hang_up()


def _hang_up() -> Response:
    """Closes the connection; the answer that is returned goes nowhere."""
    with suppress(OSError):  # the caller may have closed it first
        request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return Response()


# The desk


def _add_desk(app: Flask, wallet: Wallet) -> None:
    """What a person and a test may see and do without a signature: everything."""

    @app.get("/players/<path:player>")
    def show(player: str) -> ResponseReturnValue:
        named = Purse(**checked({"player": player, "currency": request.args.get("currency")}, PURSE))
        with wallet.store.transaction() as ledger:
            return ledger.balance(named).document()

    @app.post("/players/<path:player>/fund")
    def fund(player: str) -> ResponseReturnValue:
        body = strict_json.loads(request.get_data())
        members = checked(body, {"currency": CURRENCY, "amount_minor": AMOUNT})
        named = Purse(**checked({"player": player, "currency": members["currency"]}, PURSE))
        with wallet.store.transaction() as ledger:
            return ledger.fund(named, members["amount_minor"]).document()

    @app.get("/books")
    def books() -> ResponseReturnValue:
        with wallet.store.transaction() as ledger:
            return ledger.books()

    @app.get("/statement.csv")
    def statement() -> ResponseReturnValue:
        return Response(_csv(wallet.store.statement()), mimetype="text/csv")

    @app.get("/faults")
    def show_faults() -> ResponseReturnValue:
        return wallet.faults.document()

    @app.put("/faults")
    def put_faults() -> ResponseReturnValue:
        wallet.faults.replace(*read_rules(strict_json.loads(request.get_data())))
        return wallet.faults.document()

    @app.delete("/faults")
    def delete_faults() -> ResponseReturnValue:
        wallet.faults.replace([], None)
        return wallet.faults.document()


def _csv(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A table with its head, in pieces of a line."""
    for row in chain([STATEMENT_COLUMNS], rows):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(row)
        yield line.getvalue()
