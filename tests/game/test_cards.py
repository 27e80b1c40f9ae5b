from __future__ import annotations

import pytest

from casino_brag.game.cards import PACK, Card


def test_the_pack_has_52_cards_in_index_order() -> None:
    assert [card.index for card in PACK] == list(range(52))
    assert len({str(card) for card in PACK}) == 52


def test_every_card_reads_back_from_its_text() -> None:
    assert [Card.parse(str(card)) for card in PACK] == list(PACK)


def test_index_is_rank_times_four_plus_suit() -> None:
    assert all(card.index == 4 * card.rank + card.suit for card in PACK)
    assert [str(PACK[index]) for index in (0, 1, 2, 3, 4, 51)] == ["2c", "2d", "2h", "2s", "3c", "As"]


@pytest.mark.parametrize("text", ["", "3", "3H", "10h", "1h", "hh", "3h ", "ah", "３h", "Ahh"])
def test_other_text_is_no_card(text: str) -> None:
    with pytest.raises(ValueError, match="is not a card: write a rank"):
        Card.parse(text)


@pytest.mark.parametrize("index", [-1, 52])
def test_an_index_outside_the_pack_is_no_card(index: int) -> None:
    with pytest.raises(ValueError, match=r"0\.\.51"):
        Card(index)
