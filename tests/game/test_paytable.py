from __future__ import annotations

import json
import pickle
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from casino_brag.game.hands import Category
from casino_brag.game.paytable import PAYOUT_MAX_MINOR, Paytable, PaytableError, Refusal, StakeRefused
from casino_brag.game.rules import (
    AnteBonus,
    BonusPaid,
    Claim,
    ClaimFigure,
    ClaimWager,
    Limits,
    Rounding,
    StakeRange,
    TieResult,
)
from casino_brag.game.settlement import Stakes, maximum_payout_minor
from tests.paytables import paytables

PAYTABLES = Path(__file__).parents[2] / "paytables"
BRAG = Paytable.load(PAYTABLES / "three-card-brag.toml")
DOUBLE_PLAY = Paytable.load(PAYTABLES / "double-play-brag.toml")


@given(paytables())
def test_a_document_gives_the_paytable_back(paytable: Paytable) -> None:
    stored = json.loads(paytable.canonical_bytes())
    again = Paytable.from_document(stored)
    assert stored == paytable.document()
    assert again == paytable
    assert again.digest == paytable.digest
    assert hash(again) == hash(paytable)
    assert pickle.loads(pickle.dumps(paytable)) == paytable


@pytest.mark.parametrize("paytable", [BRAG, DOUBLE_PLAY], ids=lambda paytable: paytable.game)
def test_a_shipped_file_says_the_same_as_its_document(paytable: Paytable) -> None:
    text = (PAYTABLES / f"{paytable.game}.toml").read_text(encoding="utf-8")
    assert paytable.document() == tomllib.loads(text)
    assert Paytable.from_document(paytable.document()) == paytable


def test_the_shipped_games_are_those_of_the_rules_documents() -> None:
    assert (BRAG.play_multiple, DOUBLE_PLAY.play_multiple) == (1, 2)
    assert [int(pays) for pays in BRAG.play_pays.values()] == [1, 1, 1, 1, 1, 1]
    assert [int(pays) for pays in DOUBLE_PLAY.play_pays.values()] == [1, 1, 1, 1, 4, 5]
    assert BRAG.ante_bonus == AnteBonus(
        BonusPaid.ALWAYS,
        {Category.RUN: Fraction(1), Category.RUNNING_FLUSH: Fraction(4), Category.PRIAL: Fraction(5)},
    )
    assert DOUBLE_PLAY.ante_bonus is None
    assert BRAG.pair_bonus == DOUBLE_PLAY.pair_bonus
    assert BRAG.pair_bonus is not None
    assert [int(pays) for pays in BRAG.pair_bonus.pays.values()] == [1, 4, 6, 30, 40]


@pytest.mark.parametrize("paytable", [BRAG, DOUBLE_PLAY], ids=lambda paytable: paytable.game)
def test_the_largest_stake_of_either_wager_is_accepted_in_every_shipped_currency(paytable: Paytable) -> None:
    for currency, limits in paytable.limits.items():
        assert limits.pair_bonus is not None
        paytable.check_stakes(currency, limits.ante.max_minor)
        paytable.check_stakes(currency, limits.ante.min_minor, limits.pair_bonus.max_minor)


def test_layout_and_comments_do_not_change_the_digest(tmp_path: Path) -> None:
    text = (PAYTABLES / "three-card-brag.toml").read_text(encoding="utf-8")
    kept = [line.split("#")[0].rstrip() for line in text.splitlines()]
    bare = tmp_path / "three-card-brag.toml"
    bare.write_text("\n".join(line for line in kept if line).replace(" = ", "="), encoding="utf-8")
    assert Paytable.load(bare).digest == BRAG.digest


def test_odds_written_differently_have_one_digest() -> None:
    document = BRAG.document()
    document["pair_bonus"]["pays"]["flush"] = "8/2"
    assert Paytable.from_document(document).digest == BRAG.digest


def test_everything_in_a_file_counts_in_the_digest() -> None:
    changed = [
        replace(BRAG, title="3 card brag"),
        replace(BRAG, claims=()),
        replace(BRAG, tie=TieResult.DEALER),
        replace(BRAG, rounding=Rounding.DOWN),
        replace(BRAG, limits={"GBP": BRAG.limits["GBP"]}),
        replace(BRAG, ranking=replace(BRAG.ranking, best_prial=None)),
    ]
    assert len({paytable.digest for paytable in [BRAG, *changed]}) == 7


@pytest.mark.parametrize(
    ("stakes", "field", "reason"),
    [
        (("SEK", 100, 0), "currency", Refusal.CURRENCY_NOT_OFFERED),
        (("gbp", 100, 0), "currency", Refusal.CURRENCY_NOT_OFFERED),
        (("GBP", 0, 0), "ante_minor", Refusal.OUT_OF_LIMITS),
        (("GBP", -5, 0), "ante_minor", Refusal.OUT_OF_LIMITS),
        (("GBP", 4, 0), "ante_minor", Refusal.OUT_OF_LIMITS),
        (("GBP", 300_005, 0), "ante_minor", Refusal.OUT_OF_LIMITS),
        (("GBP", 2**63, 0), "ante_minor", Refusal.OUT_OF_LIMITS),
        (("GBP", 101, 0), "ante_minor", Refusal.OFF_STEP),
        (("GBP", 100, -5), "pair_bonus_minor", Refusal.OUT_OF_LIMITS),
        (("GBP", 100, 100_005), "pair_bonus_minor", Refusal.OUT_OF_LIMITS),
        (("GBP", 100, 7), "pair_bonus_minor", Refusal.OFF_STEP),
        (("GBP", 300_000, 100_000), "pair_bonus_minor", Refusal.PAYOUT_TOO_LARGE),
    ],
)
def test_stakes_are_refused_with_field_and_reason(
    stakes: tuple[str, int, int], field: str, reason: Refusal
) -> None:
    with pytest.raises(StakeRefused) as refused:
        BRAG.check_stakes(*stakes)
    assert (refused.value.field, refused.value.reason) == (field, reason)
    assert refused.value.detail == str(refused.value)


def test_a_pair_bonus_is_refused_where_the_game_has_none() -> None:
    document = BRAG.document()
    del document["pair_bonus"]
    for limits in document["limits"].values():
        del limits["pair_bonus"]
    paytable = Paytable.from_document(document)
    paytable.check_stakes("GBP", 100, 0)
    with pytest.raises(StakeRefused, match="no Pair Bonus") as refused:
        paytable.check_stakes("GBP", 100, 5)
    assert refused.value.reason is Refusal.NO_PAIR_BONUS


def test_the_payout_bound_is_exact() -> None:
    limits = replace(BRAG.limits["GBP"], payout_max_minor=maximum_payout_minor(BRAG, Stakes(100)))
    paytable = replace(BRAG, limits={"GBP": limits})
    paytable.check_stakes("GBP", 100)
    with pytest.raises(StakeRefused) as refused:
        paytable.check_stakes("GBP", 105)
    assert (refused.value.field, refused.value.reason) == ("ante_minor", Refusal.PAYOUT_TOO_LARGE)


def test_no_paytable_lets_a_round_pay_more_than_the_overall_bound() -> None:
    limits = Limits(StakeRange(1, 2**53 - 1, 1), None, None)
    paytable = replace(BRAG, limits={"GBP": limits}, pair_bonus=None)
    paytable.check_stakes("GBP", PAYOUT_MAX_MINOR // 9)
    with pytest.raises(StakeRefused) as refused:
        paytable.check_stakes("GBP", PAYOUT_MAX_MINOR // 9 + 1)
    assert refused.value.reason is Refusal.PAYOUT_TOO_LARGE


@pytest.mark.parametrize(
    ("value", "exact", "holds"),
    [
        ("98 %", Fraction(975, 1000), True),
        ("98 %", Fraction(9749, 10_000), False),
        ("98 %", Fraction(9954, 10_000), False),
        ("97.996138 %", Fraction(979961384, 10**9), True),
        ("97.996139 %", Fraction(979961384, 10**9), False),
        ("98.0%", Fraction(97996, 100_000), True),
        ("98.00 %", Fraction(97994, 100_000), False),
    ],
)
def test_a_claim_is_matched_to_its_digits(value: str, exact: Fraction, holds: bool) -> None:
    assert Claim(ClaimFigure.RTP, ClaimWager.MAIN, value, "leaflet").holds(exact) is holds


def test_a_document_with_stand_ins_never_becomes_a_paytable() -> None:
    document: dict[str, Any] = {}
    with pytest.raises(PaytableError) as error:
        Paytable.from_document(document)
    assert {problem.key for problem in error.value.problems} == {
        "game",
        "title",
        "ranking",
        "dealer",
        "play",
        "ante",
        "tie",
        "limits",
    }
