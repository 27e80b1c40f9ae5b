"""The page of a PAR sheet, for people who approve a paytable or have just changed one.

All its words and shown numbers are made in this package once, so that both forms of the page say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final

from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import StakeRange
from casino_brag.game.rules_text import CATEGORY_NAMES, odds_text, rules_in_words
from casino_brag.odds.outcomes import DEALS, HANDS
from casino_brag.odds.pages import wagers
from casino_brag.odds.pages.parts import (
    Block,
    Commands,
    Headlines,
    Page,
    Section,
    Table,
    Terms,
    Text,
    Warn,
    codes,
    numbers,
    words,
)
from casino_brag.odds.pages.shown import (
    FIGURES,
    NONE,
    WAGERS,
    Document,
    decimal,
    number,
    one_line,
    percent,
    strategy_text,
)
from casino_brag.odds.par_sheet import ROW_NAMES
from casino_brag.odds.returns import hands_by_category


def page(paytable: Paytable, document: Document) -> Page:
    """The PAR sheet of a paytable, from the document of its figures."""
    parts = (
        _short(document),
        _claims(document),
        _rules(paytable),
        wagers.main(document),
        wagers.pair_bonus(document),
        wagers.combined(document),
        wagers.strategies(document),
        wagers.rounds_needed(document),
        wagers.per_stake(document),
        _words(),
        _checking(document),
        _exact_figures(document),
    )
    return Page(
        f"PAR sheet: {one_line(document['title'])}",
        (
            ("Game", document["game"]),
            ("Digest of the paytable", document["digest"]),
            ("Digest of the order of hands", document["ranking_digest"]),
        ),
        tuple(part for part in parts if part is not None),
    )


def _short(document: Document) -> Section:
    main = document["main"]
    average = decimal(Fraction(main["total_staked_antes"]) / main["deals"])
    return Section(
        "In short",
        (
            _verdict(document),
            Headlines(tuple(_headlines(main, document["pair_bonus"]))),
            Text(
                "RTP and house edge have different denominators. Both speak of the same loss: the RTP of all money"
                f" staked, on average {average} Antes a round with the Play, the house edge of the Ante alone. So the"
                " two do not add up to 100 %."
            ),
            Text(
                f"All figures are exact, counted over all {number(DEALS)} ways to deal three cards to the player and"
                " three to the dealer. The player decides in the way that is best on average; whoever decides"
                " otherwise does worse, as shown under “Ways to play”."
            ),
            *([_ROUNDED] if document["rounding"] else []),
        ),
    )


def _headlines(main: Document, pair_bonus: Document | None) -> Iterator[tuple[str, str, str]]:
    edge = Fraction(main["house_edge_exact"])
    lost = "of each Ante is lost on average" if edge >= 0 else "below 0: the player wins on average"
    yield "RTP, main game", percent(main["rtp_exact"]), "of all money staked on Ante and Play comes back"
    yield "House edge, main game", percent(edge), lost
    if pair_bonus is not None:
        yield "RTP, Pair Bonus", percent(pair_bonus["rtp_exact"]), "of the money staked on it comes back"
    played = f"{number(main['strategy']['hands_played'])} of {number(HANDS)} hands; the others are folded"
    yield "Best strategy: play", strategy_text(main["strategy"]), played


_ROUNDED: Final = Text(
    "Winnings in this game are rounded down to whole minor units, which costs the player something at some stakes."
    " The figures here leave that out, and no stake has a lower house edge. True figures by stake are under “Stakes and"
    " rounding”."
)


def _verdict(document: Document) -> Block:
    if document["warnings"]:
        advice = "Lower what the paytable pays, or make winning harder, until this box is gone."
        return Warn(
            "This paytable favours the player and cannot be published", (*document["warnings"], advice)
        )
    wagers_return = (
        "main game and the Pair Bonus each return" if document["pair_bonus"] else "main game returns"
    )
    return Text(f"The {wagers_return} no more than is staked: this paytable does not favour the player.")


def _claims(document: Document) -> Section:
    if not document["claims"]:
        return Section("Claims", (Text("The paytable repeats no figures printed elsewhere."),))
    return Section(
        "Claims",
        (
            Text(
                "Figures printed elsewhere about this game. A claim holds when the exact figure, rounded to as many"
                " digits as the claim has, is the claimed one."
                + (" Here it must be so at each stake shown below, too." if document["rounding"] else "")
            ),
            Table(
                "Claimed and exact figures",
                words("figure") + numbers("claimed", "exact") + words("the claim", "source"),
                tuple(
                    (
                        f"{FIGURES[claim['figure']]}, {WAGERS[claim['wager']]}",
                        claim["value"],
                        percent(claim["exact_fraction"]),
                        "holds" if claim["holds"] else "DOES NOT HOLD",
                        one_line(claim["source"]),
                    )
                    for claim in document["claims"]
                ),
            ),
        ),
    )


def _rules(paytable: Paytable) -> Section:
    hands = dict(zip(Category, hands_by_category(paytable), strict=True))
    pays = {"Play pays": paytable.play_pays}
    if paytable.ante_bonus is not None:
        pays["Ante Bonus pays"] = paytable.ante_bonus.pays
    if paytable.pair_bonus is not None:
        pays["Pair Bonus pays"] = paytable.pair_bonus.pays
    return Section(
        "Rules",
        (
            Table(
                f"The {number(HANDS)} hands and what they pay, the best first",
                words("hand") + numbers("hands", *pays),
                tuple(
                    (
                        CATEGORY_NAMES[category],
                        number(hands[category]),
                        *(odds_text(odds[category]) if category in odds else NONE for odds in pays.values()),
                    )
                    for category in reversed(paytable.ranking.categories)
                ),
            ),
            Text("The rules as players read them:"),
            Terms(tuple((section.title, section.paragraphs) for section in rules_in_words(paytable))),
            _limits(paytable),
        ),
    )


def _limits(paytable: Paytable) -> Table:
    return Table(
        "Stakes, and the most a round may pay, in minor units of the currency",
        words("currency")
        + numbers("Ante", *(["Pair Bonus"] if paytable.pair_bonus else []), "largest payout"),
        tuple(
            (
                currency,
                *(_range(stakes) for stakes in (limits.ante, limits.pair_bonus) if stakes is not None),
                NONE if limits.payout_max_minor is None else number(limits.payout_max_minor),
            )
            for currency, limits in paytable.limits.items()
        ),
    )


def _range(stakes: StakeRange) -> str:
    return f"{number(stakes.min_minor)} to {number(stakes.max_minor)} by {number(stakes.step_minor)}"


_GLOSSARY: Final = (
    ("Ante", "The stake before the cards are dealt. Most amounts on this page are in Antes."),
    (
        "Play",
        "The stake a player adds, after seeing three cards, to meet the dealer. A player who folds adds none.",
    ),
    ("Ante Bonus", "Extra pay on the Ante for strong cards. It has no stake of its own."),
    ("Pair Bonus", "A separate wager, staked before the deal, on the player's three cards alone."),
    ("Main game", "Ante, Play and Ante Bonus together."),
    ("Pays, “to 1”", "Winnings for each unit staked. 2 staked at 3 to 1 win 6, and the 2 come back as well."),
    (
        "RTP, return to player",
        "All that is returned, stakes included, over all that is staked, the Play included.",
    ),
    ("House edge", "What the house wins on average, over the Ante; of the Pair Bonus, over its stake."),
    ("Element of risk", "What the house wins on average, over all that is staked. It is 100 % less the RTP."),
    (
        "Hit",
        "More comes back than was staked. The hit frequency is the share of rounds in which that happens.",
    ),
    ("Push", "What was staked comes back, and no more. A push is no hit."),
    (
        "Variance, standard deviation",
        "How far single rounds scatter about their average. The standard deviation is the square root of the variance.",
    ),
    (
        "Skewness",
        "Above 0 where the large differences from the average are wins, below 0 where they are losses.",
    ),
    (
        "Covariance, correlation",
        "How two wagers go together: above 0, they tend to win in the same rounds. Correlation is the covariance on a"
        " scale from −1 to 1.",
    ),
    ("Strategy", "Which hands are played and which are folded, the only choice a player has after staking."),
    ("Minor unit", "The smallest unit of a currency, such as a penny."),
    ("Digest", "A fingerprint (SHA-256). Whenever the data differ, so do their digests."),
)


def _words() -> Section:
    return Section("Words", (Terms(tuple((term, (meaning,)) for term, meaning in _GLOSSARY)),))


def _checking(document: Document) -> Section:
    file = f"paytables/{document['game']}"
    return Section(
        "Checking this page",
        (
            Text(
                "The paytable's digest is taken over the canonical JSON (RFC 8785) of what its file says. Comments and"
                " layout do not change it; everything else does. A server that deals by this paytable names the same"
                f" digest. The other digest is over all {number(HANDS)} hands from the weakest to the strongest,"
                " because a mistake in their order need not show in the RTP."
            ),
            Text(
                "With the program's source and the paytable in its directory “paytables”, the first command writes all"
                " figures for machines. The second computes digests and figures again, by code that shares nothing with"
                " the program, and names each that differs; mistakes, rounds needed and figures by stake it leaves out."
                " The third compares the claims, the fourth lists the hands in their order, the digest last."
            ),
            Commands(
                (
                    f"casino-brag par-sheet {file}.toml --format json > {file}.par.json",
                    "python verification/check_paytables.py paytables",
                    f"casino-brag claims {file}.toml",
                    f"casino-brag rank {file}.toml",
                )
            ),
        ),
    )


def _exact_figures(document: Document) -> Section:
    main = document["main"]
    compared = [
        {key: figures[key] for key in ("name", "rtp_exact", "house_edge_exact")}
        for figures in main["alternatives"]
    ]
    return Section(
        "Exact figures",
        (
            Text(
                "The percentages and variances of this page as fractions in lowest terms, under their names in the JSON"
                " form. A share of deals is their number over that of all deals."
            ),
            Table(
                "Decimals and fractions",
                codes("figure") + numbers("decimal") + codes("fraction"),
                tuple(_exact_rows({**document, "main": {**main, "alternatives": compared}}, "")),
            ),
        ),
    )


_NOT_SHARES: Final = {"variance", "covariance"}


def _exact_rows(node: Document, path: str) -> Iterator[tuple[str, str, str]]:
    """A row for every ``…_exact`` in the document, in its order."""
    for key, value in node.items():
        if isinstance(value, Mapping):
            yield from _exact_rows(value, f"{path}{key}.")
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Mapping):
                    name = next((item[key] for key in ROW_NAMES if key in item), "")
                    yield from _exact_rows(item, f"{path}{key}[{name}].")
        elif key.endswith("_exact") and value is not None:
            figure = key.removesuffix("_exact")
            shown = decimal(value) if figure in _NOT_SHARES else percent(value)
            yield f"{path}{figure}", shown, str(value)
