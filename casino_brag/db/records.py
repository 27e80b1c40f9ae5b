"""Records as the database's functions take them: JSON whose members have the names of columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb


def as_jsonb(records: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Jsonb:
    """One record, or many; UUIDs, times and bytes are given as such and read back by their columns' types."""
    return Jsonb(records, dumps=_dumps)


def _dumps(records: Any) -> str:
    return json.dumps(records, default=_as_text, ensure_ascii=False)


def _as_text(value: Any) -> str:
    match value:
        case bytes():
            return "\\x" + value.hex()
        case UUID():
            return str(value)
        case _:
            return str(value.isoformat())
