"""Checks of signatures: only the service moves money, and every request of it counts once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from casino_brag.catalogue.signing import ACCEPTED_SECONDS
from casino_brag.conformance.bench import (
    STAKE_MINOR,
    Bench,
    Body,
    Failed,
    Key,
    NotTried,
    must_be_done,
)
from casino_brag.wallet.seamless import Operation, Verdict

CLOCKS_SECONDS: Final = 60
"""How far the two clocks may lie apart without a check of timestamps going wrong."""

SIGNED_HEADERS: Final = ("X-Operator", "X-Key-Id", "X-Timestamp", "X-Nonce", "X-Signature")


def wrong_signature_is_refused(wallet: Bench) -> None:
    """A debit signed with another secret is answered HTTP 401, and takes nothing.

    Whoever can call the wallet without the secret can empty it.
    """
    body = _encoded(wallet.stake())
    key = Key(wallet.subject.key.key_id, wallet.subject.key.secret + "x")
    _is_kept_out(wallet, Operation.DEBIT, body, wallet.signed(Operation.DEBIT, body, key=key))


def signature_of_another_form_is_refused(wallet: Bench) -> None:
    """A signature that is empty, cut short or without v1= is answered HTTP 401, and takes nothing.

    Comparing as far as the shorter of two texts goes accepts an empty one.
    """
    body = _encoded(wallet.stake())
    headers = wallet.signed(Operation.DEBIT, body)
    right = headers["X-Signature"]
    for given in ("v1=", right[:11], right.removeprefix("v1="), "v1=" + "0" * 64):
        _is_kept_out(wallet, Operation.DEBIT, body, {**headers, "X-Signature": given})


def altered_body_is_refused(wallet: Bench) -> None:
    """A debit whose amount was altered after signing is answered HTTP 401, and takes nothing.

    The signature covers the raw body.
    """
    stake = wallet.stake()
    altered = _encoded({**stake, "amount_minor": STAKE_MINOR + 1})
    _is_kept_out(wallet, Operation.DEBIT, altered, wallet.signed(Operation.DEBIT, _encoded(stake)))


def altered_path_is_refused(wallet: Bench) -> None:
    """A debit that arrives at /credit is answered HTTP 401, and gives nothing.

    The signature covers the path; otherwise every stake can be turned into a payout.
    """
    body = _encoded(wallet.stake())
    _is_kept_out(wallet, Operation.CREDIT, body, wallet.signed(Operation.DEBIT, body))


def altered_headers_are_refused(wallet: Bench) -> None:
    """A debit with another timestamp or nonce than was signed is answered HTTP 401, and takes nothing.

    Otherwise a request that was overheard can be made fresh again.
    """
    body = _encoded(wallet.stake())
    headers, other = (
        wallet.signed(Operation.DEBIT, body),
        wallet.signed(Operation.DEBIT, body, late_seconds=1),
    )
    for name in ("X-Timestamp", "X-Nonce"):
        _is_kept_out(wallet, Operation.DEBIT, body, {**headers, name: other[name]})


def absent_header_is_refused(wallet: Bench) -> None:
    """A debit that lacks one of the five signing headers is answered HTTP 401, and takes nothing.

    An absent header must not be taken for an empty or a usual one.
    """
    for absent in SIGNED_HEADERS:
        body = _encoded(wallet.stake())
        headers = wallet.signed(Operation.DEBIT, body)
        _is_kept_out(
            wallet, Operation.DEBIT, body, {name: headers[name] for name in headers if name != absent}
        )


def unknown_key_is_refused(wallet: Bench) -> None:
    """A debit that names an unknown key is answered HTTP 401, and takes nothing.

    A key that was retired must be worth nothing.
    """
    body = _encoded(wallet.stake())
    key = Key(wallet.subject.key.key_id + "-unknown", wallet.subject.key.secret)
    _is_kept_out(wallet, Operation.DEBIT, body, wallet.signed(Operation.DEBIT, body, key=key))


def unknown_operator_is_refused(wallet: Bench) -> None:
    """A debit that names another operator is answered HTTP 401, and takes nothing.

    A key belongs to one operator.
    """
    body = _encoded(wallet.stake())
    headers = wallet.signed(Operation.DEBIT, body, operator=wallet.subject.operator + "-unknown")
    _is_kept_out(wallet, Operation.DEBIT, body, headers)


def old_timestamp_is_refused(wallet: Bench) -> None:
    """A debit with a timestamp more than 300 s old is answered HTTP 401, and takes nothing.

    Nonces are remembered for that long only.
    """
    body = _encoded(wallet.stake())
    headers = wallet.signed(Operation.DEBIT, body, late_seconds=ACCEPTED_SECONDS + CLOCKS_SECONDS)
    _is_kept_out(wallet, Operation.DEBIT, body, headers)


def future_timestamp_is_refused(wallet: Bench) -> None:
    """A debit with a timestamp more than 300 s ahead is answered HTTP 401, and takes nothing.

    It would still be fresh after its nonce was forgotten.
    """
    body = _encoded(wallet.stake())
    headers = wallet.signed(Operation.DEBIT, body, late_seconds=-ACCEPTED_SECONDS - CLOCKS_SECONDS)
    _is_kept_out(wallet, Operation.DEBIT, body, headers)


def clocks_may_differ(wallet: Bench) -> None:
    """A timestamp less than 300 s away, either way, is accepted.

    A clock that is a few minutes wrong must not stop play.
    """
    body = _encoded({"player": wallet.subject.player, "currency": wallet.currency})
    for late in (ACCEPTED_SECONDS - CLOCKS_SECONDS, CLOCKS_SECONDS - ACCEPTED_SECONDS):
        reply = wallet.post(
            Operation.BALANCE, body, wallet.signed(Operation.BALANCE, body, late_seconds=late)
        )
        if reply.verdict is not Verdict.DONE:
            raise Failed(
                f"a timestamp {abs(late)} s {'old' if late > 0 else 'ahead'} to be accepted", str(reply)
            )


def repeated_request_is_refused(wallet: Bench) -> None:
    """A request that arrives again, byte for byte, is answered HTTP 401.

    Our own repeats have a new nonce, so this one comes from somebody else.
    """
    stake = _encoded(wallet.stake())
    headers = wallet.signed(Operation.DEBIT, stake)
    must_be_done(wallet.post(Operation.DEBIT, stake, headers))
    _is_kept_out(wallet, Operation.DEBIT, stake, headers)


def nonce_of_another_request_is_refused(wallet: Bench) -> None:
    """A nonce that another request used is answered HTTP 401, though the signature is right.

    A nonce counts once by itself, whatever it came with.
    """
    body = _encoded({"player": wallet.subject.player, "currency": wallet.currency})
    first = wallet.signed(Operation.BALANCE, body)
    must_be_done(wallet.post(Operation.BALANCE, body, first))
    stake = _encoded(wallet.stake())
    again = wallet.signed(Operation.DEBIT, stake, nonce=first["X-Nonce"])
    _is_kept_out(wallet, Operation.DEBIT, stake, again)


def second_key_is_accepted(wallet: Bench) -> None:
    """A call signed with the operator's other live key is accepted.

    Keys are rotated while rounds are played; both are live for a while.
    """
    if wallet.subject.second_key is None:
        raise NotTried("no second key was given")
    body = _encoded({"player": wallet.subject.player, "currency": wallet.currency})
    reply = wallet.post(
        Operation.BALANCE, body, wallet.signed(Operation.BALANCE, body, key=wallet.subject.second_key)
    )
    must_be_done(reply)


def _encoded(body: Body) -> bytes:
    return json.dumps(body).encode()


def _is_kept_out(wallet: Bench, operation: Operation, body: bytes, headers: Mapping[str, str]) -> None:
    before = wallet.balance()
    reply = wallet.post(operation, body, headers)
    if reply.http_status != 401:
        raise Failed("HTTP 401", str(reply))
    wallet.must_hold(before)


CHECKS: Final = (
    wrong_signature_is_refused,
    signature_of_another_form_is_refused,
    altered_body_is_refused,
    altered_path_is_refused,
    altered_headers_are_refused,
    absent_header_is_refused,
    unknown_key_is_refused,
    unknown_operator_is_refused,
    old_timestamp_is_refused,
    future_timestamp_is_refused,
    clocks_may_differ,
    repeated_request_is_refused,
    nonce_of_another_request_is_refused,
    second_key_is_accepted,
)
