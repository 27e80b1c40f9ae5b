"""The checks of a wallet: a right one passes all of them, and every check is failed by a wallet with its fault."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import pytest
from faulty_wallet import FUNDS_MINOR, PLAYER, SUBJECT, Fault, FaultyWallet

from casino_brag.conformance.bench import Subject
from casino_brag.conformance.kit import FUNDS_MIN_MINOR, GROUPS, NAMES, CouldNotRun, run
from casino_brag.conformance.report import Outcome, Report
from casino_brag.outbound import Unanswered

CURRENCY_CHECKS = [
    "currency-without-decimals",
    "currency-with-two-decimals",
    "currency-with-three-decimals",
    "currency-with-eight-decimals",
]

MISMATCH_CHECKS = [
    "debit-id-with-another-amount",
    "debit-id-with-another-player",
    "debit-id-with-another-currency",
    "debit-id-with-another-round",
    "debit-id-as-a-credit",
    "credit-id-with-another-amount",
    "credit-id-as-a-debit",
    "cancel-with-another-amount-is-refused",
    "cancel-with-another-player-is-refused",
    "cancel-of-a-credit-is-refused",
]

MALFORMED_CHECKS = [
    "malformed-body-is-refused",
    "debit-of-zero-is-not-done",
    "negative-amount-is-not-done",
    "fraction-is-not-done",
    "amount-as-text-is-not-done",
    "amount-true-is-not-done",
    "absent-amount-is-not-done",
]

CAUGHT_BY = {
    Fault.ODD_STAKES_ARE_ROUNDED: ["debit-takes-exactly", "whole-balance-may-be-staked", *CURRENCY_CHECKS],
    Fault.CREDIT_ENDS_AT_THE_STAKE: ["credit-gives-exactly", "parallel-play-conserves-money"],
    Fault.CREDIT_OF_ZERO_IS_REFUSED: ["credit-of-zero-is-done", "parallel-play-conserves-money"],
    Fault.CLOSED_ROUND_IS_NOT_CREDITED: ["closed-round-takes-another-credit"],
    Fault.ANSWERS_TELL_THE_BALANCE_BEFORE: ["answers-tell-the-balance-afterwards"],
    Fault.LAST_UNIT_IS_KEPT: ["whole-balance-may-be-staked"],
    Fault.ZERO_IS_NOT_TOLD: ["whole-balance-may-be-staked"],
    Fault.ROUND_HAS_ONE_DEBIT: ["round-takes-several-debits", "cancel-leaves-the-rounds-other-debits"],
    Fault.UNKNOWN_MEMBERS_ARE_REFUSED: ["unknown-members-are-ignored"],
    Fault.FEW_HUNDREDTHS_ARE_DROPPED: ["currency-with-two-decimals", "parallel-play-conserves-money"],
    Fault.TWO_DECIMALS_EVERYWHERE: ["currency-with-three-decimals", "currency-with-eight-decimals"],
    Fault.HUNDREDTHS_EVERYWHERE: [
        "currency-without-decimals",
        "currency-with-three-decimals",
        "currency-with-eight-decimals",
    ],
    Fault.REPEATED_DEBIT_COUNTS: [
        "debit-repeated-counts-once",
        "debit-repeated-at-once-counts-once",
        "repeat-is-known-by-its-content",
    ],
    Fault.REPEATED_DEBIT_IS_REFUSED: [
        "debit-repeated-counts-once",
        "debit-repeated-at-once-counts-once",
        "repeat-is-known-by-its-content",
        "cancel-leaves-the-rounds-other-debits",
    ],
    Fault.REPEATED_CREDIT_COUNTS: ["credit-repeated-counts-once", "credit-repeated-at-once-counts-once"],
    Fault.REPEAT_IS_KNOWN_BY_ITS_BYTES: ["repeat-is-known-by-its-content"],
    Fault.AMOUNT_IS_NOT_COMPARED: [
        "debit-id-with-another-amount",
        "credit-id-with-another-amount",
        "cancel-with-another-amount-is-refused",
    ],
    Fault.PLAYER_IS_NOT_COMPARED: ["debit-id-with-another-player", "cancel-with-another-player-is-refused"],
    Fault.CURRENCY_IS_NOT_COMPARED: ["debit-id-with-another-currency"],
    Fault.ROUND_IS_NOT_COMPARED: ["debit-id-with-another-round"],
    Fault.DIRECTION_IS_NOT_COMPARED: [
        "debit-id-as-a-credit",
        "credit-id-as-a-debit",
        "cancel-of-a-credit-is-refused",
    ],
    Fault.MISMATCH_IS_A_CONFLICT: MISMATCH_CHECKS,
    Fault.MISMATCH_IS_CARRIED_OUT: MISMATCH_CHECKS,
    Fault.IDS_ARE_LOOKED_UP_FIRST: [
        "debit-repeated-at-once-counts-once",
        "credit-repeated-at-once-counts-once",
        "cancel-repeated-at-once-returns-once",
        "cancel-racing-its-debit-nets-zero",
        "parallel-debits-never-overdraw",
    ],
    Fault.BALANCES_ARE_WRITTEN_BACK: [
        "cancel-racing-its-debit-nets-zero",
        "parallel-play-conserves-money",
        "parallel-debits-never-overdraw",
    ],
    Fault.CANCEL_KEEPS_THE_MONEY: [
        "cancel-returns-the-debit",
        "cancel-repeated-returns-once",
        "cancel-repeated-at-once-returns-once",
        "cancelled-debit-stays-cancelled",
        "cancel-leaves-the-rounds-other-debits",
        "parallel-play-conserves-money",
    ],
    Fault.CANCEL_RETURNS_AGAIN: ["cancel-repeated-returns-once", "cancel-repeated-at-once-returns-once"],
    Fault.CANCEL_OF_AN_UNKNOWN_DEBIT_PAYS: [
        "cancel-of-an-unknown-debit-moves-nothing",
        "late-debit-is-refused",
    ],
    Fault.CANCEL_OF_AN_UNKNOWN_DEBIT_IS_HTTP_404: [
        "cancel-of-an-unknown-debit-moves-nothing",
        "late-debit-is-refused",
        "cancel-of-a-refused-debit-moves-nothing",
    ],
    Fault.CANCEL_OF_AN_UNKNOWN_DEBIT_IS_FORGOTTEN: ["late-debit-is-refused"],
    Fault.CANCELLED_DEBIT_IS_CALLED_DONE: ["cancelled-debit-stays-cancelled", "late-debit-is-refused"],
    Fault.REFUSED_DEBIT_IS_GIVEN_BACK: ["cancel-of-a-refused-debit-moves-nothing"],
    Fault.CREDIT_CAN_BE_CANCELLED: ["cancel-of-a-credit-is-refused"],
    Fault.CANCEL_IS_OF_THE_ROUND: ["cancel-leaves-the-rounds-other-debits"],
    Fault.OVERDRAFT_OF_TEN: [
        "debit-beyond-the-balance-is-refused",
        "cancel-of-a-refused-debit-moves-nothing",
        "parallel-debits-never-overdraw",
    ],
    Fault.AMOUNTS_HAVE_32_BITS: [
        "largest-debit-is-refused",
        "debit-of-zero-is-not-done",
        "negative-amount-is-not-done",
    ],
    Fault.DEBIT_OF_ZERO_IS_DONE: ["debit-of-zero-is-not-done"],
    Fault.NEGATIVE_DEBIT_IS_DONE: ["negative-amount-is-not-done", "debit-of-zero-is-not-done"],
    Fault.NEGATIVE_CREDIT_IS_DONE: ["negative-amount-is-not-done"],
    Fault.FRACTION_IS_ROUNDED: ["fraction-is-not-done"],
    Fault.TEXT_IS_CONVERTED: ["amount-as-text-is-not-done"],
    Fault.TRUE_IS_ONE: ["amount-true-is-not-done"],
    Fault.ABSENT_AMOUNT_IS_ONE: ["absent-amount-is-not-done"],
    Fault.MEMBER_GIVEN_TWICE_IS_ADDED: ["member-given-twice-is-harmless"],
    Fault.MALFORMED_BODY_IS_HTTP_500: MALFORMED_CHECKS,
    Fault.MALFORMED_BODY_COSTS_ONE: MALFORMED_CHECKS,
    Fault.EVERY_CURRENCY_IS_POUNDS: ["unknown-currency-is-refused"],
    Fault.EVERY_PLAYER_IS_FUNDED: ["unknown-player-is-refused", "unknown-player-holds-nothing"],
    Fault.SIGNATURE_IS_NOT_LOOKED_AT: [
        "wrong-signature-is-refused",
        "altered-body-is-refused",
        "altered-path-is-refused",
        "altered-headers-are-refused",
        "signature-of-another-form-is-refused",
    ],
    Fault.SIGNATURE_IS_LOOKED_AT_TOO_LATE: [
        "wrong-signature-is-refused",
        "signature-of-another-form-is-refused",
        "altered-body-is-refused",
        "altered-path-is-refused",
        "altered-headers-are-refused",
        "absent-header-is-refused",
        "unknown-key-is-refused",
        "unknown-operator-is-refused",
        "old-timestamp-is-refused",
        "future-timestamp-is-refused",
        "nonce-of-another-request-is-refused",
    ],
    Fault.SIGNATURE_IS_COMPARED_IN_PART: ["signature-of-another-form-is-refused"],
    Fault.PATH_IS_NOT_SIGNED: ["altered-path-is-refused"],
    Fault.ABSENT_OPERATOR_IS_ASSUMED: ["absent-header-is-refused"],
    Fault.KEY_ID_IS_NOT_LOOKED_AT: ["unknown-key-is-refused", "second-key-is-accepted"],
    Fault.OPERATOR_IS_NOT_LOOKED_AT: ["unknown-operator-is-refused"],
    Fault.OLD_TIMESTAMP_IS_ACCEPTED: ["old-timestamp-is-refused"],
    Fault.FUTURE_TIMESTAMP_IS_ACCEPTED: ["future-timestamp-is-refused"],
    Fault.CLOCKS_MUST_AGREE: ["clocks-may-differ"],
    Fault.NONCES_ARE_NOT_KEPT: ["repeated-request-is-refused", "nonce-of-another-request-is-refused"],
    Fault.NONCES_ARE_KEPT_WITH_THEIR_SIGNATURE: ["nonce-of-another-request-is-refused"],
    Fault.ONE_KEY_IS_LIVE: ["second-key-is-accepted"],
    Fault.STAKES_OF_ONE_ARE_ANSWERED_LATE: [
        "answers-come-in-time",
        "parallel-play-conserves-money",
        *CURRENCY_CHECKS,
    ],
}
"""The checks that a wallet with the fault fails."""

BY_CHANCE = {"cancel-racing-its-debit-nets-zero"}
"""What fails or not by which of two calls came first, where the fault is another than haste."""


def outcomes(wallet: FaultyWallet, subject: Subject = SUBJECT) -> Mapping[str, Outcome]:
    return {finding.name: finding.outcome for finding in run(subject, wallet).findings}


def not_tried(report: Report) -> Mapping[str, str]:
    return {
        finding.name: finding.detail["because"]
        for finding in report.findings
        if finding.outcome is Outcome.NOT_TRIED
    }


def test_a_right_wallet_passes_every_check() -> None:
    assert outcomes(FaultyWallet()) == dict.fromkeys(NAMES, Outcome.HELD)


def test_every_fault_is_tried() -> None:
    assert set(CAUGHT_BY) == set(Fault)


def test_every_check_can_fail() -> None:
    assert {check for checks in CAUGHT_BY.values() for check in checks} == set(NAMES)


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_a_fault_fails_its_checks_and_no_others(fault: Fault) -> None:
    found = outcomes(FaultyWallet(fault))
    failed = {check for check in found if found[check] is Outcome.FAILED}
    assert failed - BY_CHANCE == set(CAUGHT_BY[fault]) - BY_CHANCE
    assert failed >= set(CAUGHT_BY[fault])


def test_every_check_has_a_name_of_its_own_a_sentence_and_a_reason() -> None:
    findings = run(SUBJECT, FaultyWallet()).findings
    assert [finding.name for finding in findings] == list(NAMES)
    assert len(set(NAMES)) == len(NAMES)
    for finding in findings:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", finding.name)
        assert finding.says.endswith(".")
        assert finding.why.endswith(".")
    assert list(dict.fromkeys(finding.group for finding in findings)) == [group for group, _ in GROUPS]


@pytest.mark.parametrize("fault", [None, Fault.AMOUNT_IS_NOT_COMPARED, Fault.CANCEL_KEEPS_THE_MONEY])
def test_the_balance_is_put_back(fault: Fault | None) -> None:
    wallet = FaultyWallet(fault)
    before = dict(wallet.money)
    report = run(SUBJECT, wallet)
    assert wallet.money == before
    assert (report.balance_found_minor, report.balance_left_minor) == (FUNDS_MINOR, FUNDS_MINOR)
    assert "The player holds 5000 minor units, as before." in report.lines()


def test_a_balance_that_cannot_be_put_back_is_told() -> None:
    wallet = FaultyWallet(Fault.CREDIT_ENDS_AT_THE_STAKE)
    report = run(SUBJECT, wallet)
    left = wallet.money[PLAYER, "GBP"]
    assert left < FUNDS_MINOR
    assert f"The player held 5000 minor units and holds {left} now." in report.lines()


def test_a_check_can_be_run_alone() -> None:
    report = run(SUBJECT, FaultyWallet(), ["late-debit-is-refused"])
    assert [finding.name for finding in report.findings] == ["late-debit-is-refused"]


class OneDebitARound(FaultyWallet):
    def _debit(self, asked: Mapping[str, Any], raw: bytes) -> dict[str, Any]:
        if asked["transaction_id"] not in self.movements and self._debits_of(asked):
            return {"status": "refused", "reason": "limit_reached"}
        return super()._debit(asked, raw)


def test_a_wallet_with_one_debit_a_round_is_told_of_the_other_funding() -> None:
    report = run(SUBJECT, OneDebitARound())
    assert report.count(Outcome.FAILED) == 0
    reason = "the wallet takes one debit a round: choose the funding reserve"
    assert not_tried(report) == dict.fromkeys(
        ["round-takes-several-debits", "cancel-leaves-the-rounds-other-debits"], reason
    )


class StakesUpToAThousand(FaultyWallet):
    def _hindrance(self, asked: Mapping[str, Any]) -> str | None:
        return "limit_reached" if asked["amount_minor"] > 1_000 else super()._hindrance(asked)


def test_a_player_with_limits_cannot_try_its_whole_balance() -> None:
    report = run(SUBJECT, StakesUpToAThousand())
    assert report.count(Outcome.FAILED) == 0
    assert set(not_tried(report)) == {
        "whole-balance-may-be-staked",
        "debit-beyond-the-balance-is-refused",
        "cancel-of-a-refused-debit-moves-nothing",
        "parallel-debits-never-overdraw",
    }


def test_what_is_not_there_is_not_tried() -> None:
    wallet = FaultyWallet()
    wallet.money[PLAYER, "KWD"] = 9
    report = run(dataclasses.replace(SUBJECT, second_key=None, currencies=("GBP", "ISK", "KWD")), wallet)
    assert report.count(Outcome.FAILED) == 0
    assert not_tried(report) == {
        "currency-without-decimals": "ISK is not offered",
        "currency-with-three-decimals": "the player holds 9 minor units of KWD, and 10 are needed",
        "currency-with-eight-decimals": "no currency of 8 decimals was named",
        "second-key-is-accepted": "no second key was given",
    }


def test_the_first_currency_is_used_throughout() -> None:
    wallet = FaultyWallet()
    wallet.money = {(PLAYER, "KWD"): FUNDS_MIN_MINOR}
    report = run(dataclasses.replace(SUBJECT, currencies=("KWD",)), wallet)
    assert report.count(Outcome.HELD) == len(NAMES) - 3
    assert {asked["currency"] for asked in (m.asked for m in wallet.movements.values())} <= {"KWD", "XTS"}


def silent(*_: Any, **__: Any) -> tuple[int, bytes]:
    raise Unanswered("no connection: Connection refused", sent=False)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (silent, "The wallet does not answer: no connection: Connection refused. Look at its address."),
        (lambda *_, **__: (401, b"{}"), "look at the operator's name, the key id and the secret"),
        (lambda *_, **__: (404, b"<h1>Not found</h1>"), "It answered balance: HTTP 404 <h1>Not found</h1>"),
        (
            lambda *_, **__: (200, b'{"status": "refused", "reason": "player_unknown"}'),
            "does not tell the balance of player p-1 in GBP",
        ),
        (
            lambda *_, **__: (200, b'{"status": "done", "balance_minor": 999}'),
            "holds 999 minor units: give it 1000 or more",
        ),
    ],
    ids=["silent", "unauthorised", "elsewhere", "unknown player", "no funds"],
)
def test_a_wallet_that_cannot_be_checked_is_not(answer: Any, told: str) -> None:
    with pytest.raises(CouldNotRun, match=re.escape(told)):
        run(SUBJECT, answer)


def test_a_wallet_that_falls_silent_is_told() -> None:
    wallet = FaultyWallet()

    def send(url: str, *rest: Any, **seconds: float) -> tuple[int, bytes]:
        if url.endswith("/cancel"):
            return silent()
        return wallet(url, *rest, **seconds)

    report = run(SUBJECT, send, ["cancel-returns-the-debit"])
    (finding,) = report.findings
    assert finding.detail == {
        "expected": "an answer to cancel within 0.5 s",
        "seen": "no connection: Connection refused",
    }
    assert report.balance_left_minor == FUNDS_MINOR


def test_a_wallet_that_falls_silent_for_good_leaves_the_balance_open() -> None:
    wallet = FaultyWallet()
    calls = iter(range(1_000))

    def send(*rest: Any, **seconds: float) -> tuple[int, bytes]:
        return wallet(*rest, **seconds) if next(calls) < 2 else silent()

    report = run(SUBJECT, send, ["debit-takes-exactly"])
    assert report.count(Outcome.FAILED) == 1
    assert report.balance_left_minor is None
    assert "The player held 5000 minor units; the wallet does not tell what it holds now." in report.lines()
