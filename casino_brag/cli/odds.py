"""``par-sheet``, ``outcomes``, ``rank``, ``claims`` and ``diff``: what a paytable is worth, exactly."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

import click

from casino_brag.cli.arguments import PAYTABLE, Parsed, json_option
from casino_brag.game import hands
from casino_brag.game.hands import Hand
from casino_brag.game.paytable import Paytable
from casino_brag.odds import pages
from casino_brag.odds.claims import Judgement, judge_claims
from casino_brag.odds.differences import differences
from casino_brag.odds.one_hand import one_hand
from casino_brag.odds.outcomes import DEALER_HANDS
from casino_brag.odds.par_sheet import par_sheet as sheet_of

SHAPES_SHOWN: Final = 12
"""How many shapes of hands a line names before it goes on to count them."""

SHARES: Final = ("rtp", "house_edge", "element_of_risk", "hit_frequency", "push_frequency", "contribution")
"""Figures that are shown as percentages."""


@click.command("par-sheet")
@click.argument("paytable", metavar="FILE", type=PAYTABLE)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "md", "html"]),
    default="md",
    show_default=True,
    help="Markdown to read here, HTML to print, JSON for machines.",
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
def par_sheet(paytable: Paytable, form: str) -> None:
    """Every exact figure of the paytable in FILE."""
    document = sheet_of(paytable)
    for warning in document["warnings"]:
        click.echo(f"Warning: {warning}.", err=True)
    match form:
        case "json":
            click.echo(json.dumps(document, indent=1))
        case "md":
            click.echo(pages.markdown(paytable, document), nl=False)
        case "html":
            click.echo(pages.html(paytable, document), nl=False)


@click.command()
@click.argument("hand", metavar="CARDS", type=Parsed("cards", Hand.parse))
@click.argument("paytable", metavar="FILE", type=PAYTABLE)
@json_option
def outcomes(hand: Hand, paytable: Paytable, as_json: bool) -> None:
    """What the dealer's hands do to the player's CARDS, such as 'Qs 6d 4c', and whether to play them."""
    found = one_hand(paytable, hand)
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(f"{hand}: {found['category'].replace('_', ' ')}, rank class {found['rank_class']} of 741")
    for name in ("dealer_not_qualified", "win", "tie", "lose"):
        click.echo(f"  {name.replace('_', ' '):22}{found[name]:>7,} of {DEALER_HANDS:,} dealer hands")
    for decision, worth in found["expectation"].items():
        average = float(Fraction(worth) / DEALER_HANDS)
        click.echo(f"  {f'if you {decision}':22}{average:>+13.6f} Antes on average ({worth} in all)")
    click.echo(f"Better: {found['decision']}")


@click.command()
@click.argument("paytable", metavar="FILE", type=PAYTABLE)
def rank(paytable: Paytable) -> None:
    """All 22,100 hands in the order of the paytable in FILE, weakest first, and a digest of that order."""
    click.echo("\n".join(hands.order_lines(paytable.ranking)))
    click.echo(f"sha256 {hands.order_digest(paytable.ranking)}")


@click.command()
@click.argument("paytables", metavar="FILE...", type=PAYTABLE, nargs=-1, required=True)
@json_option
def claims(paytables: tuple[Paytable, ...], as_json: bool) -> None:
    """Whether figures printed elsewhere, the claims of each paytable FILE, are the exact ones.

    The exit code is 1 when one does not hold.
    """
    judged = [(paytable, judgement) for paytable in paytables for judgement in judge_claims(paytable)]
    if as_json:
        click.echo(json.dumps([{"game": paytable.game, **each.document()} for paytable, each in judged]))
    else:
        for paytable, each in judged:
            click.echo(_claim(paytable, each))
        for paytable in paytables:
            if not paytable.claims:
                click.echo(f"{paytable.game}: no claims")
    sys.exit(0 if all(each.holds for _, each in judged) else 1)


def _claim(paytable: Paytable, judged: Judgement) -> str:
    claim = judged.claim
    says = f"{claim.figure.replace('_', ' ')} of the {claim.wager.replace('_', ' ')} wager is {claim.value}"
    verdict = "holds" if judged.holds else "DOES NOT HOLD"
    exact = f"exactly {_percent(float(judged.exact))} ({judged.exact})"
    rounded = next(
        (
            f", and with winnings rounded {_percent(float(figure))} at a stake of {stake}"
            for stake, figure in judged.at_stakes
            if not claim.holds(figure)
        ),
        "",
    )
    return f"{paytable.game}: {verdict}: {claim.source!r} says the {says}; it is {exact}{rounded}"


@click.command()
@click.argument("old", metavar="OLD", type=PAYTABLE)
@click.argument("new", metavar="NEW", type=PAYTABLE)
@json_option
def diff(old: Paytable, new: Paytable, as_json: bool) -> None:
    """What changes from the paytable in OLD to the one in NEW: rules, figures and how to play."""
    found = differences(old, new)
    click.echo(json.dumps(found, indent=1) if as_json else "\n".join(_differences(found)))


def _differences(found: dict[str, Any]) -> Iterable[str]:
    if found["old"] == found["new"]:
        yield "The same rules, limits and claims, under one digest: nothing changes."
        return
    yield "Rules"
    yield from _changes(found["rules"])
    yield "Figures"
    yield from _changes([change for change in found["figures"] if _is_shown(change["key"])])
    yield "Play for the highest expectation"
    strategy = found["strategy"]
    for key in ("hands_played", "lowest_hand_played", "is_rank_threshold"):
        yield f"  {key}: {_value(strategy['old'][key])} -> {_value(strategy['new'][key])}"
    for key, now in (("now_played", "now worth playing"), ("now_folded", "now worth folding")):
        shapes = strategy[key]["shapes"]
        named = ", ".join(shapes[:SHAPES_SHOWN]) + (
            f" and {len(shapes) - SHAPES_SHOWN} more shapes" if shapes[SHAPES_SHOWN:] else ""
        )
        yield f"  {now}: {strategy[key]['hands']:,} hands{f' ({named})' if shapes else ''}"
    yield f"  hands that stand elsewhere in the ranking: {found['hands_reordered']:,}"
    yield from (f"Warning: {warning}" for warning in found["warnings"])


def _is_shown(key: str) -> bool:
    """Of other strategies only the two figures they are compared by; exact numbers are for machines."""
    return (
        key.endswith((".rtp", ".house_edge"))
        if key.startswith("main.alternatives")
        else not key.endswith("_exact")
    )


def _changes(changes: list[dict[str, Any]]) -> Iterable[str]:
    width = max((len(change["key"]) for change in changes), default=0)
    for change in changes:
        show = _percent if change["key"].rpartition(".")[2] in SHARES else _value
        yield f"  {change['key']:{width}}  {show(change['old'])} -> {show(change['new'])}"
    if not changes:
        yield "  nothing changes"


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.6f} %"


def _value(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)
