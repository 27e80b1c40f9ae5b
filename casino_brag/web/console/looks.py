"""How the console writes what it shows: amounts, times, cards, shares.  All are filters of the templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from casino_brag.catalogue.jurisdictions import jurisdiction, names
from casino_brag.game.cards import Card
from casino_brag.odds.pages.shown import decimal, number, percent
from casino_brag.wallet.currency import exponent

_RANK_NAMES: Final = {
    **{str(pips): str(pips) for pips in range(2, 10)},
    "T": "10",
    "J": "jack",
    "Q": "queen",
    "K": "king",
    "A": "ace",
}
_SUITS: Final = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
_SUIT_NAMES: Final = {"c": "clubs", "d": "diamonds", "h": "hearts", "s": "spades"}


def money(minor: int, currency: str) -> str:
    """An amount in a currency's own units; a code nobody declared has none, and minor units are shown.

    >>> money(123456, "GBP"), money(-5, "GBP"), money(450000, "JPY"), money(7, "???")
    ('1,234.56 GBP', '−0.05 GBP', '450,000 JPY', '7 minor units of ???')
    """
    places = exponent(currency)
    if places is None:
        return f"{minor:,} minor units of {currency}"
    whole, part = divmod(abs(minor), 10**places)
    sign = "−" if minor < 0 else ""
    return f"{sign}{whole:,}{f'.{part:0{places}d}' if places else ''} {currency}"


def moment(value: datetime | str) -> str:
    """A time in UTC, to the second.

    >>> moment("2026-11-30T12:00:00.123456Z")
    '2026-11-30 12:00:00'
    """
    return _time(value).strftime("%Y-%m-%d %H:%M:%S")


def machine_time(value: datetime | str) -> str:
    """The same for the ``datetime`` attribute.

    >>> machine_time("2026-11-30T12:00:00.123456Z")
    '2026-11-30T12:00:00Z'
    """
    return _time(value).strftime("%Y-%m-%dT%H:%M:%SZ")


def card_name(text: str) -> str:
    """A card in words, for those who hear the page.

    >>> card_name("As"), card_name("Td")
    ('ace of spades', '10 of diamonds')
    """
    card = str(Card.parse(text))
    return f"{_RANK_NAMES[card[0]]} of {_SUIT_NAMES[card[1]]}"


def card_face(text: str) -> str:
    """What is printed on a card.

    >>> card_face("As"), card_face("Td")
    ('A♠', '10♦')
    """
    card = str(Card.parse(text))
    return f"{'10' if card[0] == 'T' else card[0]}{_SUITS[card[1]]}"


def spoken(value: str) -> str:
    """A name of the program as words; those of wagers are proper names.

    >>> spoken("pair_bonus"), spoken("no_ante_bonus"), spoken("awaiting_decision")
    ('Pair Bonus', 'No Ante Bonus', 'Awaiting decision')
    """
    words = value.replace("_", " ")
    for bonus in ("Ante Bonus", "Pair Bonus"):
        words = words.replace(bonus.lower(), bonus)
    return words[:1].upper() + words[1:]


def key_in_words(key: str) -> str:
    """A key of a paytable as words; that a hand pays is understood.

    >>> key_in_words("pair_bonus.pays.run"), key_in_words("ante.pays"), key_in_words("limits.GBP.ante.max")
    ('Pair Bonus, run', 'Ante, pays', 'Limits, GBP, ante, max')
    """
    return spoken(", ".join(key.replace(".pays.", ".").split(".")))


def jurisdiction_titles(found: Sequence[str]) -> str:
    """Jurisdictions as they are called; one that is not installed any more by its name.

    >>> jurisdiction_titles(["gb", "none", "atlantis"])
    'Great Britain, No particular jurisdiction, atlantis'
    """
    return ", ".join(jurisdiction(name).title if name in names() else name for name in found)


def short(digest: str) -> str:
    """The beginning of a digest, by which a person knows it again.

    >>> short("0123456789abcdef")
    '0123456789ab'
    """
    return digest[:12]


def _time(value: datetime | str) -> datetime:
    return (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "money": money,
    "moment": moment,
    "machine_time": machine_time,
    "card_name": card_name,
    "card_face": card_face,
    "spoken": spoken,
    "short": short,
    "jurisdiction_titles": jurisdiction_titles,
    "number": number,
    "percent": percent,
    "decimal": decimal,
}
