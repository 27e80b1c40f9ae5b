"""What is wrong with a draft: it is no paytable, or one that may not be approved for where it is meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from casino_brag.catalogue.jurisdictions import jurisdiction, names
from casino_brag.catalogue.paytables import published_figures
from casino_brag.game.paytable import Paytable
from casino_brag.game.paytable_file import PaytableError
from casino_brag.odds.returns import best_returns


@dataclass(frozen=True, slots=True)
class Checked:
    """What a text is: a paytable, or what is wrong with it, by key of the paytable; the empty key is all of it."""

    paytable: Paytable | None
    problems: Mapping[str, list[str]]


def check_text(game: str, text: str) -> Checked:
    """Reads a game's paytable from the text of its file.

    >>> check_text("x", "title = 3").problems["title"]
    ['3 will not do: give one line of text, at most 80 characters']
    """
    try:
        return Checked(Paytable.parse(text, game=game), {})
    except PaytableError as error:
        problems: dict[str, list[str]] = {}
        for problem in error.problems:
            problems.setdefault(problem.key, []).append(problem.message)
        return Checked(None, problems)


def broken_guards(
    paytable: Paytable, jurisdictions: Iterable[str], certificate: str | None, ceiling: Fraction
) -> dict[str, list[str]]:
    """Sentences by the field to look at, a key of the paytable, `jurisdictions` or `certificate`; none when it will do.

    `jurisdictions` are names.  `ceiling` is at most 1, and above what any type of wager may return of what is staked on
    it, played at its best.  It holds for drafts only, and a draft that returns exactly as much is refused, so 100 %
    always is.  A paytable that is published from a file is judged by `player_favouring` alone, and may return 100 %.

    >>> paytable = Paytable.load("paytables/double-play-brag.toml")
    >>> broken_guards(paytable, ["mga"], None, Fraction(1))
    {}
    >>> broken_guards(paytable, [], None, Fraction(99, 100))["play.pays"]
    ['the main game returns 99.541837 % of what is staked (779105/782691): it has to stay below 99 %']
    >>> list(broken_guards(paytable, ["gb"], None, Fraction(1)))
    ['certificate']
    """
    broken = {
        key: [
            f"{wager} returns {float(rtp * 100):.6f} % of what is staked ({rtp}):"
            f" it has to stay below {float(ceiling * 100):g} %"
        ]
        for key, (wager, rtp) in best_returns(paytable).items()
        if rtp >= ceiling
    }
    named, figures = list(jurisdictions), published_figures(paytable)
    found = [jurisdiction(name) for name in named if name in names()]
    problems = [problem for each in found if (problem := each.floor_problem(figures)) is not None]
    if unknown := [ascii(name) for name in named if name not in names()]:
        problems.append(f"{', '.join(unknown)}: name one or more of {', '.join(names())}")
    if problems:
        broken["jurisdictions"] = problems
    if certificate is None and (demanding := [each.title for each in found if each.certificate]):
        broken["certificate"] = [
            f"say which certificate covers this paytable: {', '.join(demanding)} asks for one"
        ]
    return broken
