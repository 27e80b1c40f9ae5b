"""What was typed into a form, read and checked field by field, with what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from flask import g, request

from casino_brag.errors import Errors, ServiceError


class Form:
    """What was typed into a form, and what is wrong with it.

    `errors` holds messages by field, `problem` the sentence that belongs to none of them.  `sent` says whether there
    is anything to act on.
    """

    def __init__(self, values: Mapping[str, Sequence[str]], *, sent: bool) -> None:
        self._values = {name: list(given) for name, given in values.items()}
        self.sent = sent
        self.errors: Errors = {}
        self.problem = ""
        self.status = 200

    def value(self, name: str, default: str = "") -> str:
        """What was typed into a field; `default` where nothing was, as when the form is shown first."""
        given = self._values.get(name)
        return given[0] if given else default

    def number(self, name: str, *, digits: int = 9) -> int | None:
        """The whole number of at most so many digits that was typed into a field; None where nothing was.

        What is no such number is None too, and told at its field; so with the other readers.
        """
        text = self.value(name).strip()
        if not text or (text.isascii() and text.isdecimal() and len(text) <= digits):
            return int(text) if text else None
        self.errors[name] = ["Give a whole number, such as 1."]
        return None

    def identifier(self, name: str) -> UUID | None:
        """The identifier that was typed into a field."""
        text = self.value(name).strip()
        try:
            return UUID(text) if text else None
        except ValueError:
            self.errors[name] = ["This is no identifier: copy the whole of it."]
            return None

    def day(self, name: str, *, later: int = 0) -> datetime | None:
        """When the day began (UTC) that was typed into a field, or so many days later; 1970 to 9998."""
        text = self.value(name).strip()
        try:
            day = datetime.combine(date.fromisoformat(text), time(), UTC) if text else None
        except ValueError:
            day = datetime.min
        if day is not None and not 1970 <= day.year <= 9998:
            self.errors[name] = ["Give a day as 2026-11-30."]
            return None
        return None if day is None else day + timedelta(days=later)

    def values(self, name: str) -> list[str]:
        """All values of one name, such as of checkboxes."""
        return list(self._values.get(name, ()))

    def named(self, prefix: str) -> dict[str, str]:
        """The fields whose names begin so, by the rest of their names."""
        return {
            name[len(prefix) :]: given[0]
            for name, given in self._values.items()
            if name.startswith(prefix) and given
        }

    def put(self, name: str, *values: str) -> None:
        """Puts values into a field, as if they had been typed."""
        self._values[name] = list(values)

    def clear(self, prefix: str) -> None:
        """Takes the fields away whose names begin so."""
        self._values = {name: given for name, given in self._values.items() if not name.startswith(prefix)}

    def refuse(self, refused: ServiceError) -> None:
        """Takes over what a refusal says, to be shown where it belongs; `status` becomes the refusal's."""
        self.errors = {name: list(messages) for name, messages in (refused.errors or {}).items()}
        self.problem = refused.detail
        self.status = refused.meaning.status
        g.problem = refused.code.value

    def attempt(self) -> Attempt:
        """A block whose `ServiceError` becomes messages of this form, so that what was typed can be shown again."""
        return Attempt(self)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What :meth:`Form.attempt` gives to ``with``."""

    form: Form

    def __enter__(self) -> None:
        """Begins the block."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Takes a refusal over; any other error goes on."""
        if isinstance(error, ServiceError):
            self.form.refuse(error)
            return True
        return False


def posted() -> Form:
    """The form that came with this request; empty, and not `sent`, on a GET."""
    if request.method != "POST":
        return Form({}, sent=False)
    return Form(request.form.to_dict(flat=False), sent=True)


def asked() -> Form:
    """The query of this request as a form, such as filters are."""
    return Form(request.args.to_dict(flat=False), sent=bool(request.args))
