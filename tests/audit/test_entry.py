"""An entry's text: one way to write it down, and everything can be read back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.audit import Entry, EntryType

MOMENT = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
mappings = st.none() | st.dictionaries(texts, values, max_size=5)


def entry(**known: Any) -> Entry:
    facts: dict[str, Any] = {"type": EntryType.SESSION_OPENED, "occurred_at": MOMENT, "actor": "system:tests"}
    return Entry(**facts | known)


@given(reason=st.none() | texts, before=mappings, after=mappings, payload=mappings)
def test_the_text_is_canonical_and_holds_everything(
    reason: str | None,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    payload: dict[str, Any] | None,
) -> None:
    text = entry(reason=reason, before=before, after=after, payload=payload).text()
    read = json.loads(text)
    assert rfc8785.dumps(read) == text.encode()
    assert (read["reason"], read["before"], read["after"], read["payload"]) == (
        reason,
        before,
        after,
        payload,
    )


def test_the_text_is_written_as_anybody_would_by_hand() -> None:
    identifier, operator = UUID(int=7), UUID(int=8)
    written = entry(
        entry_id=identifier, operator_id=operator, reason='a "reason"', payload={"b": 1, "a": [UUID(int=9)]}
    )
    assert written.text() == (
        '{"actor":"system:tests","after":null,"authoriser":null,"before":null,'
        f'"entry_id":"{identifier}","occurred_at":"2026-11-30T12:00:00.123456Z",'
        f'"payload":{{"a":["{UUID(int=9)}"],"b":1}},"reason":"a \\"reason\\"",'
        f'"subjects":{{"operator_id":"{operator}"}},"type":"session.opened"}}'
    )


def test_times_are_kept_to_the_microsecond_in_utc_wherever_they_were_read() -> None:
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    whole = MOMENT.replace(microsecond=0)
    assert json.loads(entry(occurred_at=elsewhere).text())["occurred_at"] == "2026-11-30T12:00:00.123456Z"
    assert json.loads(entry(occurred_at=whole).text())["occurred_at"] == "2026-11-30T12:00:00.000000Z"


def test_an_entry_has_an_identifier_of_its_own() -> None:
    assert entry().entry_id != entry().entry_id
    assert entry().entry_id.version == 7


@pytest.mark.parametrize("kind", EntryType)
def test_a_type_is_a_subject_and_an_action(kind: EntryType) -> None:
    subject, action = kind.value.split(".")
    assert subject.isidentifier()
    assert action.isidentifier()
    assert kind.name == f"{subject}_{action}".upper()


def test_a_number_that_json_readers_would_round_is_no_number_of_an_entry() -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        entry(payload={"amount_minor": 2**53}).text()
