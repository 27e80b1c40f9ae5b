"""An entry, and the only place where one is turned into the text whose bytes are hashed and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import rfc8785

from casino_brag.db.clock import rfc3339
from casino_brag.ids import uuid7


class EntryType(StrEnum):
    """What happened, as subject and action."""

    OPERATOR_ADDED = "operator.added"
    """An operator was added, with its first key."""
    OPERATOR_KEY_ROTATED = "operator.key_rotated"
    """An operator was given a new key; of two older ones the older was retired."""
    PAYTABLE_ACTIVATED = "paytable.activated"
    """A paytable version was published or returned to, and the game offers it from now on."""
    GAME_DISABLED = "game.disabled"
    """A game takes no new rounds."""
    SESSION_OPENED = "session.opened"
    """A player's session began; a demo account may have been filled."""
    SESSION_CLOSED = "session.closed"
    """An operator ended a session."""
    WALLET_DEPOSIT = "wallet.deposit"
    """Money came to a player's account from outside."""
    WALLET_WITHDRAWAL = "wallet.withdrawal"
    """Money left a player's account for outside."""
    ROUND_OPENED = "round.opened"
    """Stakes were taken and cards dealt."""
    ROUND_SETTLED = "round.settled"
    """A decision was taken and the round paid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that happened.

    `occurred_at` is the database's clock, to the microsecond.  `actor` did it (``player:…``, ``operator:…``,
    ``system:…``); `authoriser` allowed it where that is somebody else.  Amounts in `payload` are minor units.
    """

    type: EntryType
    occurred_at: datetime
    actor: str
    authoriser: str | None = None
    operator_id: UUID | None = None
    player_id: UUID | None = None
    session_id: UUID | None = None
    round_id: UUID | None = None
    reason: str | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    payload: Mapping[str, Any] | None = None
    entry_id: UUID = field(default_factory=uuid7)

    def text(self) -> str:
        """The entry in RFC 8785 canonical form.  Its UTF-8 bytes are what the log keeps and hashes."""
        subjects = {
            "operator_id": self.operator_id,
            "player_id": self.player_id,
            "session_id": self.session_id,
            "round_id": self.round_id,
        }
        return rfc8785.dumps(
            {
                "entry_id": str(self.entry_id),
                "type": self.type.value,
                "occurred_at": rfc3339(self.occurred_at),
                "actor": self.actor,
                "authoriser": self.authoriser,
                "subjects": {name: str(value) for name, value in subjects.items() if value is not None},
                "reason": self.reason,
                "before": _plain(self.before),
                "after": _plain(self.after),
                "payload": _plain(self.payload),
            }
        ).decode()


def _plain(values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if values is None else {name: _plain_value(value) for name, value in values.items()}


def _plain_value(value: Any) -> Any:
    match value:
        case Mapping():
            return _plain(value)
        case str() | int() | None:
            return value
        case Sequence():
            return [_plain_value(item) for item in value]
        case _:
            return str(value)
