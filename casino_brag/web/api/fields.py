"""Fields of requests: exact integers of minor units, currencies, short texts."""

from __future__ import annotations

import re
from typing import Any

import marshmallow as ma
from marshmallow.validate import Length, OneOf, Range, Regexp

from casino_brag.game.rules import MINOR_MAX
from casino_brag.wallet.currency import exponent

_NO_TEXT = r"\x00-\x1f\x7f\ud800-\udfff"
"""Control characters, and halves of surrogate pairs, which are no characters."""


class Whole(Regexp):
    """A pattern that the whole text has to match, written so that every reader of JSON Schema understands it."""

    def __init__(self, pattern: str, *, error: str) -> None:
        super().__init__(pattern, error=error)
        self._whole = re.compile(pattern)

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, str) or self._whole.fullmatch(value) is None:
            raise ma.ValidationError(self._format_error(value))
        return value


class WholeNumber(ma.fields.Integer):
    """A JSON integer: no boolean, no text, no fraction, no exponent."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if type(value) is not int:
            raise ma.ValidationError("Give a whole number.")
        return value


def amount_minor(*, least: int = 0, description: str = "", **kwargs: Any) -> WholeNumber:
    """An amount of a request, in minor units."""
    return WholeNumber(
        validate=Range(least, MINOR_MAX, error="Give a whole number of minor units, {min} to {max}."),
        metadata={"description": description, "format": "int64"},
        **kwargs,
    )


def known_currency(value: str) -> None:
    """Refuses a code that stands for no currency."""
    if exponent(value) is None:
        raise ma.ValidationError("Give an ISO 4217 code, or a declared one such as XBT.")


def currency() -> ma.fields.String:
    """A currency's code."""
    return ma.fields.String(
        required=True,
        validate=[Whole(r"^[A-Z]{3,12}$", error="Give a code of capital letters."), known_currency],
        metadata={"description": "Of ISO 4217, or a declared one such as XBT."},
    )


def printable(most: int, **kwargs: Any) -> ma.fields.String:
    """A text of 1 to `most` visible ASCII characters."""
    return ma.fields.String(
        validate=[
            Length(1, most, error=f"Give 1 to {most} characters."),
            Whole(r"^[\x21-\x7e]+$", error="Use visible ASCII characters only."),
        ],
        **kwargs,
    )


def written(most: int, **kwargs: Any) -> ma.fields.String:
    """A text for people: 1 to `most` characters on one line, with something to see at both ends."""
    return ma.fields.String(
        validate=[
            Length(1, most, error=f"Give 1 to {most} characters."),
            Whole(
                rf"^[^\s{_NO_TEXT}](?:[^{_NO_TEXT}]*[^\s{_NO_TEXT}])?$",
                error="Write one line, without blanks at its ends.",
            ),
        ],
        **kwargs,
    )


def one_of(*choices: str, **kwargs: Any) -> ma.fields.String:
    """One of a closed set of texts."""
    return ma.fields.String(validate=OneOf(choices, error="Give one of: {choices}."), **kwargs)
