"""One hand of a player: what the 18,424 dealer hands do to it, and whether to play it."""

from __future__ import annotations

from fractions import Fraction

from casino_brag.game.hands import Category, Hand
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import odds_document
from casino_brag.game.settlement import Decision, Result
from casino_brag.odds.outcomes import DEALER_HANDS, outcomes
from casino_brag.odds.par_sheet import Document
from casino_brag.odds.payoffs import MAIN, payoffs, whole_stakes
from casino_brag.odds.strategies import MAX_EXPECTATION


def one_hand(paytable: Paytable, hand: Hand) -> Document:
    """The outcome counts of a hand, and in ``expectation`` what the main game wins for each decision: in Antes,
    summed over the 18,424 dealer hands, an integer or ``"a/b"``.  ``decision`` is the better one.

    >>> found = one_hand(Paytable.load("paytables/three-card-brag.toml"), Hand.parse("Qc 6d 3h"))
    >>> found["win"], found["expectation"], found["decision"]
    (271, {'play': -18471, 'fold': -18424}, 'fold')
    """
    counted = outcomes(paytable.ranking, paytable.qualifier)
    category, of_dealer = paytable.ranking.category(hand), counted.of(hand)
    stakes = whole_stakes(paytable)
    net = payoffs(paytable, stakes).net(MAIN)[tuple(Category).index(category)]
    worth = dict(zip(Result, net, strict=True))

    def antes(minor: int) -> int | str:
        return odds_document(Fraction(minor, stakes.ante_minor))

    plays = MAX_EXPECTATION.decisions(paytable)[counted.kind_of(hand)]
    return {
        "cards": [str(card) for card in hand],
        "category": category.value,
        "rank_class": paytable.ranking.rank_class(hand),
        "dealer_not_qualified": of_dealer.not_qualified,
        "win": of_dealer.win,
        "tie": of_dealer.tie,
        "lose": of_dealer.lose,
        "expectation": {
            Decision.PLAY.value: antes(
                of_dealer.not_qualified * worth[Result.NOT_QUALIFIED]
                + of_dealer.win * worth[Result.WIN]
                + of_dealer.tie * worth[Result.TIE]
                + of_dealer.lose * worth[Result.LOSE]
            ),
            Decision.FOLD.value: antes(DEALER_HANDS * worth[Result.FOLD]),
        },
        "decision": (Decision.PLAY if plays else Decision.FOLD).value,
    }
