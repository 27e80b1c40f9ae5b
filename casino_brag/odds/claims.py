"""Figures printed about a game elsewhere, judged by the exact ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Claim, ClaimFigure, ClaimWager, odds_document
from casino_brag.game.settlement import Stakes
from casino_brag.odds.payoffs import telling_stakes
from casino_brag.odds.returns import Returns, main_game, pair_bonus_game


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim and what is exactly the case.

    ``at_stakes`` is empty unless winnings are rounded down; then it holds the figure at the stakes, in minor
    units, that show what rounding does.
    """

    claim: Claim
    exact: Fraction
    at_stakes: tuple[tuple[int, Fraction], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the exact figure, rounded to the digits of the claim, is the claimed one, at every stake."""
        return all(
            self.claim.holds(figure) for figure in (self.exact, *(figure for _, figure in self.at_stakes))
        )

    def document(self) -> dict[str, Any]:
        """The same as plain data: the claim's own keys, the exact figure in both ways, and whether it holds."""
        at_stakes = {str(stake): odds_document(figure) for stake, figure in self.at_stakes}
        return {
            **self.claim.document(),
            "exact": round(float(self.exact), 12),
            "exact_fraction": odds_document(self.exact),
            **({"at_stakes": at_stakes} if at_stakes else {}),
            "holds": self.holds,
        }


def judge_claims(paytable: Paytable) -> tuple[Judgement, ...]:
    """Each claim of a paytable beside the exact figure, of the highest expectation.

    >>> [judged.holds for judged in judge_claims(Paytable.load("paytables/three-card-brag.toml"))]
    [True]
    >>> for judged in judge_claims(Paytable.load("paytables/double-play-brag.toml")):
    ...     print(judged.claim.value, judged.exact, judged.holds)
    98 % 779105/782691 False
    """
    return tuple(
        Judgement(claim, _figure(claim, _wager(paytable, claim)), _at_stakes(paytable, claim))
        for claim in paytable.claims
    )


def _at_stakes(paytable: Paytable, claim: Claim) -> tuple[tuple[int, Fraction], ...]:
    if paytable.rounding is None:
        return ()
    antes, bonuses, _ = telling_stakes(paytable)
    if claim.wager is ClaimWager.MAIN:
        stakes = {ante: Stakes(ante) for ante in antes}
    else:
        stakes = {bonus: Stakes(antes[0], bonus) for bonus in bonuses}
    return tuple((minor, _figure(claim, _wager(paytable, claim, staked))) for minor, staked in stakes.items())


def _wager(paytable: Paytable, claim: Claim, stakes: Stakes | None = None) -> Returns:
    if claim.wager is ClaimWager.MAIN:
        return main_game(paytable, stakes=stakes)
    game = pair_bonus_game(paytable, stakes)
    assert game is not None, "a claim about a Pair Bonus is refused where there is none"
    return game


def _figure(claim: Claim, game: Returns) -> Fraction:
    match claim.figure:
        case ClaimFigure.RTP:
            return game.rtp
        case ClaimFigure.HOUSE_EDGE:
            return game.house_edge
        case ClaimFigure.ELEMENT_OF_RISK:
            return game.element_of_risk
