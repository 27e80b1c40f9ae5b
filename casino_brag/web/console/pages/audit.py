"""The audit log as its readers see it: entries with their proofs, signed checkpoints, and a verification of it all."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import psycopg
from flask import Blueprint, Response, request

from casino_brag.audit import EntryType
from casino_brag.audit.listing import Filter, list_checkpoints, list_entries
from casino_brag.audit.part import PartVerified, verify_part
from casino_brag.audit.proving import inclusion, leaves_of
from casino_brag.audit.records import checkpoint_of, newest_checkpoint, verifier_keys
from casino_brag.errors import Code, ServiceError
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.web.api.compliance_schemas import EntrySchema
from casino_brag.web.api.lists import listed
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.shell import download, fragment, page, render

blueprint = Blueprint("audit", __name__)

AUDITORS: Final = (Role.AUDITOR,)

SHOWN: Final = 50

PART: Final = 20_000
"""Leaves that one step of a verification looks at: less than a second's work."""

_SUBJECTS: Final = ("operator_id", "player_id", "session_id", "round_id")


@page(blueprint, "/audit", roles=AUDITORS, nav="audit")
def entries(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Entries by what they are about, newest first."""
    query = asked()
    wanted, after = _filter(query)
    found = list_entries(conn, wanted, after=after, limit=SHOWN + 1)
    said = {name: value for name, value in request.args.items() if value and name != "cursor"}
    return render(
        "audit.html.j2",
        form=query,
        types=[("", "All types"), *((kind.value, kind.value) for kind in sorted(EntryType))],
        entries=found[:SHOWN],
        cursor=found[SHOWN - 1]["entry_id"] if len(found) > SHOWN else None,
        query=f"?{urlencode(said)}" if said else "",
        newest=newest_checkpoint(conn),
    )


@page(blueprint, "/audit/entries.csv", roles=AUDITORS, nav="audit", connected=False)
def entries_csv(who: SignedIn) -> Response:
    """The same as a table, with the bytes that are hashed."""
    wanted, _ = _filter(asked())

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        return list_entries(conn, wanted, after=after, limit=limit)

    return listed("audit-entries", tuple(EntrySchema().fields), read, "entry_id", {})


@page(blueprint, "/audit/entries/<uuid:entry_id>", roles=AUDITORS, nav="audit")
def entry(conn: psycopg.Connection[Any], who: SignedIn, entry_id: UUID) -> Response:
    """One entry: all that it says, and where it stands in the tree."""
    found = _entry(conn, entry_id)
    return render(
        "audit_entry.html.j2",
        entry=found,
        subjects=[(name, found[name]) for name in _SUBJECTS if found[name]],
        told=[
            (name, json.dumps(found[name], indent=2))
            for name in ("before", "after", "payload")
            if found[name]
        ],
        newest=newest_checkpoint(conn),
    )


@page(blueprint, "/audit/entries/<uuid:entry_id>/proof.json", roles=AUDITORS, nav="audit")
def entry_proof(conn: psycopg.Connection[Any], who: SignedIn, entry_id: UUID) -> Response:
    """What proves to others that the entry is in a signed tree: a file for ``verification/verify_log.py``."""
    signed, leaves = newest_checkpoint(conn), leaves_of(conn, entry_id=entry_id)
    if not leaves or signed is None or not all(leaf.is_in(signed) for leaf in leaves):
        raise ServiceError(
            Code.PROOF_UNAVAILABLE,
            "The entry is in no signed tree yet. One is made within seconds: try again then.",
        )
    text = json.dumps(inclusion(conn, leaves, signed), indent=1)
    return download(f"{entry_id}.json", text, "application/json")


@page(blueprint, "/audit/checkpoints", roles=AUDITORS, nav="audit")
def checkpoints(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """What the log was at each signing, and the keys that signed."""
    found = list_checkpoints(conn, after=asked().number("cursor", digits=18), limit=SHOWN + 1)
    return render(
        "audit_checkpoints.html.j2",
        checkpoints=found[:SHOWN],
        cursor=str(found[SHOWN - 1]["tree_size"]) if len(found) > SHOWN else None,
        keys=[key.text() for key in verifier_keys(conn)],
    )


@page(blueprint, "/audit/checkpoints/<int:size>.txt", roles=AUDITORS, nav="audit")
def checkpoint(conn: psycopg.Connection[Any], who: SignedIn, size: int) -> Response:
    """A checkpoint as the signed note that it is."""
    found = checkpoint_of(conn, size) if size < 2**63 else None
    if found is None:
        raise ServiceError(Code.NOT_FOUND, "There is no checkpoint of that size.")
    return download(f"checkpoint-{size}.txt", found.note, "text/plain; charset=utf-8")


@page(blueprint, "/audit/verify", roles=AUDITORS, methods=("GET", "POST"), nav="audit")
def verify(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Verifies the log from a leaf on, a part at a time, until something is wrong or all of it was looked at."""
    form = posted()
    return render("audit_verify.html.j2", **_verified(conn, form), status=form.status)


@page(blueprint, "/audit/verify/further", roles=AUDITORS, methods=("POST",), nav="audit", recorded=False)
def verify_further(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """The next part, without the frame: the first was put on record, and this belongs to it."""
    return fragment("_audit_verified.html.j2", **_verified(conn, posted()))


def _verified(conn: psycopg.Connection[Any], form: Form) -> dict[str, Any]:
    part: PartVerified | None = None
    newest = newest_checkpoint(conn)
    first, begun = (form.number(name, digits=18) for name in ("first_leaf", "begun"))
    if form.sent and first is None:
        form.errors["first_leaf"] = ["Give the number of a leaf, from 0 up."]
    first = first or 0
    with form.attempt():
        if form.sent and newest is None:
            raise ServiceError(
                Code.NOT_FOUND, "Nothing was signed yet. A checkpoint is made within seconds of an entry."
            )
        if form.sent and not form.errors:
            part = verify_part(conn, first, first + PART - 1)
            if part is None:
                form.errors["first_leaf"] = ["No signed tree has this leaf. Give a smaller number."]
    following = None
    if part is not None and part.last_leaf + 1 < part.tree_size:
        following = part.last_leaf + 1
    if form.errors:
        form.status = 422
    return {
        "form": form,
        "newest": newest,
        "part": part,
        "first": first,
        "begun": first if begun is None else begun,
        "following": following,
    }


def _entry(conn: psycopg.Connection[Any], entry_id: UUID) -> dict[str, Any]:
    found = list_entries(conn, Filter(entry_id=entry_id), after=None, limit=1)
    if not found:
        raise ServiceError(Code.NOT_FOUND, "There is no such entry, or it was archived.")
    return found[0]


def _filter(query: Form) -> tuple[Filter, UUID | None]:
    """What a query asks for; what makes no sense is told at its field, and is as if it had not been said."""
    said: dict[str, Any] = {}
    for name in ("type", "actor"):
        text = query.value(name).strip()
        if text and text.isprintable() and len(text) <= 200:
            said[name] = text
    for name in _SUBJECTS:
        said[name] = query.identifier(name)
    since, until = query.day("since"), query.day("until", later=1)
    # Every page that somebody opens is an entry, and most of what there is.
    if query.value("calls") != "yes" and said.get("type") != EntryType.STAFF_CALLED:
        said["without"] = EntryType.STAFF_CALLED.value
    return Filter(**said, since=since, until=until), query.identifier("cursor")
