"""What commands are given as text, read into what it stands for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar

import click

from casino_brag.game.paytable import Paytable, PaytableError

T = TypeVar("T")

ACTOR: Final = "system:cli"
"""Who does it, in audit entries of what a command does."""


class Parsed(click.ParamType[T]):
    """What a function makes of a text; the function's ValueError says what is wrong with it."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """The value; a default that is no text passes as it is."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


def whole(what: str, least: int, most: int) -> Parsed[int]:
    """A whole number of something, written like 1_000_000 or 1e6."""

    def parse(text: str) -> int:
        try:
            number = Decimal(text)
        except InvalidOperation:
            number = Decimal("nan")
        if not (number.is_finite() and least <= number <= most and number == int(number)):
            raise ValueError(
                f"{text!r} is no number of {what}: write 10_000_000 or 1e9, {least:,} to {most:,} of them"
            )
        return int(number)

    return Parsed("number", parse)


class _Moment(click.DateTime):
    """A day or a time, which is of UTC if it says nothing else, as a time in UTC."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time; a day is its beginning."""
        moment: datetime = super().convert(value, param, ctx)
        try:
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except OverflowError:
            self.fail(f"{value} is in no year that UTC has.", param, ctx)


MOMENT: Final = _Moment(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z"])
"""A time in UTC, written as a day, or as a time with its offset, to the second or finer."""


class PaytableRefused(click.ClickException):
    """A paytable file with problems: the exit code is that of wrong use, the message a line for each problem."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Say them on the error stream."""
        click.echo(self.message, err=True)


def _load(path: str) -> Paytable:
    try:
        return Paytable.load(path)
    except PaytableError as error:
        raise PaytableRefused(str(error)) from error


PAYTABLE = Parsed("file", _load)
"""The paytable in a file."""

json_option = click.option("--json", "as_json", is_flag=True, help="For machines.")
