"""Figures printed about a game elsewhere, judged by the exact ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Claim, ClaimFigure, ClaimWager, odds_document
from casino_brag.odds.returns import Returns, main_game, pair_bonus_game


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim and what is exactly the case."""

    claim: Claim
    exact: Fraction

    @property
    def holds(self) -> bool:
        """Whether the exact figure, rounded to the digits of the claim, is the claimed one."""
        return self.claim.holds(self.exact)

    def document(self) -> dict[str, Any]:
        """The same as plain data: the claim's own keys, the exact figure in both ways, and whether it holds."""
        return {
            **self.claim.document(),
            "exact": round(float(self.exact), 12),
            "exact_fraction": odds_document(self.exact),
            "holds": self.holds,
        }


def judge_claims(paytable: Paytable) -> tuple[Judgement, ...]:
    """Each claim of a paytable beside the exact figure, of the highest expectation and without rounding.

    >>> [judged.holds for judged in judge_claims(Paytable.load("paytables/three-card-brag.toml"))]
    [True]
    >>> for judged in judge_claims(Paytable.load("paytables/double-play-brag.toml")):
    ...     print(judged.claim.value, judged.exact, judged.holds)
    98 % 779105/782691 False
    """
    wagers: dict[ClaimWager, Returns | None] = {
        ClaimWager.MAIN: main_game(paytable),
        ClaimWager.PAIR_BONUS: pair_bonus_game(paytable),
    }
    judgements = []
    for claim in paytable.claims:
        game = wagers[claim.wager]
        assert game is not None, "a claim about a Pair Bonus is refused where there is none"
        exact = {
            ClaimFigure.RTP: game.rtp,
            ClaimFigure.HOUSE_EDGE: game.house_edge,
            ClaimFigure.ELEMENT_OF_RISK: game.element_of_risk,
        }
        judgements.append(Judgement(claim, exact[claim.figure]))
    return tuple(judgements)
