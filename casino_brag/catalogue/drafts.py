"""Drafts of paytables: written and submitted by one person, approved or rejected by another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import kwargs_row
from psycopg.types.json import Jsonb

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.guards import Checked, broken_guards, check_text
from casino_brag.catalogue.jurisdictions import names
from casino_brag.catalogue.paytables import active_number, hold, published_figures
from casino_brag.catalogue.versions import printable, version_text
from casino_brag.db.clock import clock
from casino_brag.errors import Code, Errors, ServiceError, invalid
from casino_brag.game.paytable import GAME_NAME, GAME_NAME_LENGTH_MAX, Paytable
from casino_brag.game.paytable_file import FILE_BYTES_MAX
from casino_brag.ids import uuid7
from casino_brag.odds.par_sheet import par_sheet
from casino_brag.staff.acting import carry_out, changed_meanwhile, reason_given, stated
from casino_brag.staff.people import Person

CERTIFICATE_LENGTH_MAX: Final = 200


class DraftState(StrEnum):
    """Where a draft is in its life."""

    DRAFT = "draft"
    """It is being written."""
    SUBMITTED = "submitted"
    """It waits for somebody else's decision, and changes no more."""
    APPROVED = "approved"
    """It has become a version."""
    REJECTED = "rejected"
    """It has not, and will not; another draft may begin with its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A draft, with the names of those who had to do with it.

    `number` counts the drafts of a game from 1.  `revision` is another after every change, and is what a change names
    that must not overwrite somebody else's.  `started_from` is the version whose text it began with.  What is said at
    the submission is None before; `version` is what became of it when it was approved.
    """

    draft_id: UUID
    game: str
    number: int
    state: DraftState
    text: str
    revision: int
    started_from: int | None
    created_by: str
    editors: Sequence[str]
    created_at: datetime
    changed_at: datetime
    submitted_by: str | None
    submitted_at: datetime | None
    digest: str | None
    document: str | None
    jurisdictions: Sequence[str] | None
    certificate: str | None
    note: str | None
    decided_by: str | None
    decided_at: datetime | None
    decision_reason: str | None
    version: int | None


def create_draft(
    conn: psycopg.Connection[Any],
    by: Person,
    game: str,
    *,
    text: str | None = None,
    from_version: int | None = None,
    from_draft: int | None = None,
) -> Draft:
    """Begins a draft: with a text, or with that of a version or of another draft; else with the active version's.

    Whoever wrote the other draft is an editor of this one too, also where a text is given that was made of it: nobody
    approves words of their own that somebody else has copied.  A version was approved by two, and its editors do not
    count.

    `invalid` for a name that no game can have, for several beginnings or none, and for a text that cannot be kept;
    `not_found` where there is no such version or draft; `forbidden` for who is no editor.
    """
    if not GAME_NAME.fullmatch(game) or len(game) > GAME_NAME_LENGTH_MAX:
        raise invalid(
            "game", "a game's name is of lower-case letters, digits and hyphens, as three-card-brag"
        )
    if from_version is not None and (text is not None or from_draft is not None):
        raise invalid("text", "begin with a version, or with a draft or a text")
    with conn.transaction():
        hold(conn, game)
        started_from = from_version
        if from_draft is not None:
            other = read_draft(conn, game, from_draft)
            text, started_from = other.text if text is None else text, other.started_from
        elif text is None:
            started_from = active_number(conn, game) if from_version is None else from_version
            if started_from is None:
                raise invalid("text", f"{game} has no version to begin with: give a text")
            text = version_text(conn, game, started_from)
        text = _kept(text)
        number = _next(conn, "SELECT max(number) FROM paytable_draft WHERE game = %s", game)
        entry = Entry(
            type=EntryType.PAYTABLE_DRAFT_CREATED,
            occurred_at=clock(conn),
            actor=by.actor,
            after=_record(game, number, 1, text) | {"state": DraftState.DRAFT, "started_from": started_from},
        )
        carry_out(
            conn,
            "SELECT paytable_draft_create(%s, %s, %s, %s, %s, %s, %s, %s)",
            [uuid7(), game, number, text, started_from, from_draft, by.staff_id, entry.text()],
            {},
        )
        return read_draft(conn, game, number)


def read_draft(conn: psycopg.Connection[Any], game: str, number: int) -> Draft:
    """A game's draft; `not_found` where there is none of that number."""
    with conn.cursor(row_factory=kwargs_row(_draft)) as cursor:
        found = cursor.execute(
            f"{_DRAFTS} WHERE (d.game, d.number) = (%s, %s)", [printable(game), number]
        ).fetchone()
    if found is None:
        raise ServiceError(Code.NOT_FOUND, f"There is no draft {number} of such a game.")
    return found


def list_drafts(
    conn: psycopg.Connection[Any],
    *,
    game: str | None = None,
    state: DraftState | None = None,
    after: UUID | None = None,
    limit: int = 50,
) -> list[Draft]:
    """Drafts, newest first: of one game or all, in one state or any, and those older than the draft `after`."""
    with conn.cursor(row_factory=kwargs_row(_draft)) as cursor:
        return cursor.execute(
            f"{_DRAFTS} WHERE (%(game)s::text IS NULL OR d.game = %(game)s)"
            " AND (%(state)s::text IS NULL OR d.state = %(state)s)"
            " AND (%(after)s::uuid IS NULL OR d.draft_id < %(after)s) ORDER BY d.draft_id DESC LIMIT %(limit)s",
            {"game": game and printable(game), "state": state, "after": after, "limit": limit},
        ).fetchall()


def save_draft(
    conn: psycopg.Connection[Any], by: Person, game: str, number: int, text: str, *, revision: int
) -> Draft:
    """Gives a draft another text, finished or not.

    `invalid` for a text that cannot be kept; `not_found`; `forbidden` for who is no editor; `precondition_failed` where
    the draft is not at that revision any more; `wrong_state` once it was submitted.
    """
    text = _kept(text)
    with conn.transaction():
        hold(conn, game)
        before = read_draft(conn, game, number)
        _must_be_at(before, revision)
        entry = Entry(
            type=EntryType.PAYTABLE_DRAFT_SAVED,
            occurred_at=clock(conn),
            actor=by.actor,
            before=_record(game, number, before.revision, before.text),
            after=_record(game, number, before.revision + 1, text),
        )
        carry_out(
            conn,
            "SELECT paytable_draft_save(%s, %s, %s, %s, %s, %s)",
            [game, number, revision, text, by.staff_id, entry.text()],
            {Code.WRONG_STATE: f"Draft {number} is {before.state}: begin another with its text."},
        )
        return read_draft(conn, game, number)


def submit_draft(
    conn: psycopg.Connection[Any],
    by: Person,
    game: str,
    number: int,
    *,
    revision: int,
    jurisdictions: Iterable[str],
    certificate: str | None,
    note: str,
    ceiling: Fraction,
) -> Draft:
    """Submits a draft for approval, for these jurisdictions, under the digest of its content; it changes no more.

    `certificate` is the reference of one that covers it, `ceiling` as `broken_guards` has it.  `invalid` names all
    that is wrong, by key: of the text, with what is given here, and by the guards; else as `save_draft`.
    """
    named = sorted(set(jurisdictions))
    with conn.transaction():
        hold(conn, game)
        before = read_draft(conn, game, number)
        _must_be(before, DraftState.DRAFT)
        _must_be_at(before, revision)
        checked, errors = check_text(game, before.text), Errors()
        note = stated(errors, "note", note)
        if certificate is not None:
            certificate = stated(errors, "certificate", certificate, CERTIFICATE_LENGTH_MAX)
        _guard(errors, checked, named, certificate, ceiling)
        if checked.paytable is not None:
            _must_be_new(conn, errors, checked.paytable)
        if errors or checked.paytable is None:
            raise ServiceError(Code.INVALID, "The draft cannot be submitted as it is.", errors=errors)
        digest = checked.paytable.digest
        said = {"digest": digest, "jurisdictions": named, "certificate": certificate}
        entry = _decided(conn, EntryType.PAYTABLE_SUBMITTED, by, before, DraftState.SUBMITTED, note, said)
        carry_out(
            conn,
            "SELECT paytable_draft_submit(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                *(game, number, revision, digest, checked.paytable.canonical_bytes().decode()),
                *(named, certificate, note, by.staff_id, entry.text()),
            ],
            {},
        )
        return read_draft(conn, game, number)


def approve_draft(
    conn: psycopg.Connection[Any], by: Person, game: str, number: int, *, digest: str, ceiling: Fraction
) -> int:
    """Makes what was submitted under this digest a version, with its PAR sheet; the number of the version.

    `not_found`; `invalid` where a guard is broken by now; `forbidden` for who is no approver now; `wrong_state` where
    it is not submitted; `same_person` for everybody who made, saved or submitted it; `precondition_failed` where
    another digest was submitted.
    """
    with conn.transaction():
        hold(conn, game)
        before = read_draft(conn, game, number)
        _must_be(before, DraftState.SUBMITTED)
        checked, errors = check_text(game, before.text), Errors()
        _guard(errors, checked, before.jurisdictions or (), before.certificate, ceiling)
        if errors or checked.paytable is None or checked.paytable.digest != before.digest:
            raise ServiceError(
                Code.INVALID, "What was submitted will not do any more: reject it.", errors=errors or None
            )
        version = _next(conn, "SELECT max(version) FROM paytable_version WHERE game = %s", game)
        said = {"digest": before.digest, "version": version}
        entry = _decided(
            conn, EntryType.PAYTABLE_APPROVED, by, before, DraftState.APPROVED, before.note, said
        )
        carry_out(
            conn,
            "SELECT paytable_draft_approve(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                *(game, number, digest, uuid7(), version, Jsonb(published_figures(checked.paytable))),
                *(json.dumps(par_sheet(checked.paytable)), by.staff_id, entry.text()),
            ],
            {
                Code.SAME_PERSON: "Who made, saved or submitted a draft does not approve it: somebody else has to.",
                Code.PRECONDITION_FAILED: f"What was submitted has the digest {before.digest}: read it anew.",
                Code.WRONG_STATE: "The content has become a version meanwhile.",
            },
        )
        return version


def reject_draft(conn: psycopg.Connection[Any], by: Person, game: str, number: int, *, reason: str) -> None:
    """Ends a draft, with a reason: of what was submitted an approver does, or takes it back who submitted it.

    What was not submitted is discarded by any editor.

    `not_found`, `invalid`, `forbidden`, `wrong_state`.
    """
    reason = reason_given(reason)
    with conn.transaction():
        hold(conn, game)
        before = read_draft(conn, game, number)
        said = {"digest": before.digest}
        entry = _decided(conn, EntryType.PAYTABLE_REJECTED, by, before, DraftState.REJECTED, reason, said)
        carry_out(
            conn,
            "SELECT paytable_draft_reject(%s, %s, %s, %s, %s)",
            [game, number, reason, by.staff_id, entry.text()],
            {Code.WRONG_STATE: f"Draft {number} is {before.state} already, and stays so."},
        )


_DRAFTS: Final = """
    SELECT d.draft_id, d.game, d.number, d.state, d.text, d.revision, d.started_from, creator.name AS created_by,
        ARRAY(SELECT s.name FROM unnest(d.editors) WITH ORDINALITY AS e (staff_id, place)
              JOIN staff AS s USING (staff_id) ORDER BY e.place) AS editors,
        d.created_at, d.changed_at, submitter.name AS submitted_by, d.submitted_at, d.digest, d.document,
        d.jurisdictions, d.certificate, d.note, decider.name AS decided_by, d.decided_at, d.decision_reason, v.version
    FROM paytable_draft AS d
    JOIN staff AS creator ON creator.staff_id = d.created_by
    LEFT JOIN staff AS submitter ON submitter.staff_id = d.submitted_by
    LEFT JOIN staff AS decider ON decider.staff_id = d.decided_by
    LEFT JOIN paytable_version AS v USING (version_id)
"""


def _draft(*, state: str, **columns: Any) -> Draft:
    return Draft(state=DraftState(state), **columns)


def _kept(text: str) -> str:
    """A text as it is kept: lines end as on Unix."""
    text = text.replace("\r\n", "\n")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise invalid("text", "it holds half a character: save it as UTF-8") from error
    if not text.strip() or size > FILE_BYTES_MAX or "\0" in text:
        raise invalid("text", f"give a text of 1 to {FILE_BYTES_MAX} bytes, without zero bytes")
    return text


def _next(conn: psycopg.Connection[Any], newest: str, game: str) -> int:
    row = conn.execute(newest, [game]).fetchone()
    assert row is not None
    return (row[0] or 0) + 1


def _record(game: str, number: int, revision: int, text: str) -> dict[str, Any]:
    """A draft's text, as entries tell of it."""
    return {
        "game": game,
        "draft": number,
        "revision": revision,
        "text_sha256": sha256(text.encode()).hexdigest(),
    }


def _decided(
    conn: psycopg.Connection[Any],
    kind: EntryType,
    by: Person,
    draft: Draft,
    state: DraftState,
    reason: str | None,
    said: Mapping[str, Any],
) -> Entry:
    """The entry of a draft that comes to another state."""
    named = {"game": draft.game, "draft": draft.number}
    return Entry(
        type=kind,
        occurred_at=clock(conn),
        actor=by.actor,
        reason=reason,
        before={**named, "state": draft.state},
        after={**named, "state": state, **said},
    )


def _must_be(draft: Draft, state: DraftState) -> None:
    if draft.state is not state:
        raise ServiceError(
            Code.WRONG_STATE, f"Draft {draft.number} of {draft.game} is {draft.state}, and has to be {state}."
        )


def _must_be_at(draft: Draft, revision: int) -> None:
    """So that nothing is judged that the caller has not seen."""
    if draft.revision != revision and draft.state is DraftState.DRAFT:
        raise changed_meanwhile()


def _guard(
    errors: Errors, checked: Checked, named: Sequence[str], certificate: str | None, ceiling: Fraction
) -> None:
    """Adds what is wrong with a text, or with offering it there."""
    wrong = (
        checked.problems
        if checked.paytable is None
        else broken_guards(checked.paytable, named, certificate, ceiling)
    )
    for key, problems in wrong.items():
        errors.setdefault(key, []).extend(problems)
    if not named:
        errors["jurisdictions"] = [f"name one or more of {', '.join(names())}"]


def _must_be_new(conn: psycopg.Connection[Any], errors: Errors, paytable: Paytable) -> None:
    row = conn.execute(
        "SELECT version FROM paytable_version WHERE (game, digest) = (%s, %s)",
        [paytable.game, paytable.digest],
    ).fetchone()
    if row is not None:
        errors.setdefault("text", []).append(f"version {row[0]} has this content: put that one in force")
