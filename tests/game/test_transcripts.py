"""Golden rounds: each file in ``transcripts/`` is one round, told from the stakes to the payout.

The expected lines were written from the rules, by hand.  The test reads what went into the round, settles it,
writes the transcript anew and compares the whole text.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from casino_brag.game.hands import Hand
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Deal, Decision, Reason, Result, Settlement, Spot, Stakes, settle

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
PAYTABLES = Path(__file__).parents[2] / "paytables"


def overlaid(document: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The document with a change laid over it, tables merged."""
    merged = dict(document)
    for key, value in change.items():
        merged[key] = overlaid(merged.get(key, {}), value) if isinstance(value, dict) else value
    return merged


def inputs(text: str, label: str) -> list[str]:
    return re.findall(rf"^{label} +(.*)$", text, flags=re.MULTILINE)


def played(text: str) -> tuple[Stakes, Deal, Settlement]:
    """Play the round a transcript describes, reading nothing of what it says came of it."""
    document = Paytable.load(PAYTABLES / f"{inputs(text, 'paytable')[0]}.toml").document()
    for change in inputs(text, "change"):
        document = overlaid(document, tomllib.loads(change))
    ante, pair_bonus = re.findall(r"^stakes +ante (\d+)(?:, pair bonus (\d+))?$", text, flags=re.MULTILINE)[0]
    stakes = Stakes(int(ante), int(pair_bonus or 0))
    player, dealer = (Hand.parse(inputs(text, side)[0][:8]) for side in ("player", "dealer"))
    deal, paytable = Deal(player, dealer), Paytable.from_document(document)
    return stakes, deal, settle(paytable, stakes, deal, Decision(inputs(text, "decision")[0]))


def written(text: str) -> str:
    """The transcript as it should read: its own heading and rules, then the round as it was settled."""
    stakes, deal, settlement = played(text)
    heading = text[: text.index("\nstakes ") + 1]
    pair_bonus = f", pair bonus {stakes.pair_bonus_minor}" if stakes.pair_bonus_minor else ""
    qualifies = "qualifies" if settlement.dealer_qualified else "does not qualify"
    celebrated = ", celebrated" if settlement.celebrate else ""
    staked, payout = settlement.total_staked_minor, settlement.total_payout_minor
    lines = [
        f"stakes     ante {stakes.ante_minor}{pair_bonus}",
        f"player     {deal.player}   {settlement.player_category.replace('_', ' ')}",
        f"dealer     {deal.dealer}   {settlement.dealer_category.replace('_', ' ')}, {qualifies}",
        f"decision   {settlement.decision}",
        f"result     {settlement.result}",
        "",
        f"{'wager':<10} {'stake':>7} {'payout':>7}   reason",
        *(
            f"{wager.spot:<10} {wager.stake_minor:>7} {wager.payout_minor:>7}   {wager.reason}"
            for wager in settlement.wagers
        ),
        f"{'total':<10} {staked:>7} {payout:>7}   net {settlement.net_minor:+d}{celebrated}",
    ]
    return heading + "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_is_what_the_rules_give(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert written(text) == text


def test_the_transcripts_show_every_result_spot_and_reason() -> None:
    settlements = [played(path.read_text(encoding="utf-8"))[2] for path in TRANSCRIPTS]
    wagers = [wager for settlement in settlements for wager in settlement.wagers]
    assert {settlement.result for settlement in settlements} == set(Result)
    assert {wager.spot for wager in wagers} == set(Spot)
    assert {wager.reason for wager in wagers} == set(Reason)
