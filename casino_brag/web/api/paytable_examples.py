"""Examples of what staff sends about paytables and is answered, for the OpenAPI document."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

_DIGEST: Final = sha256(b"{}").hexdigest()
_TEXT: Final = 'game = "three-card-brag"\ntitle = "3 Card Brag"\n'

BEGIN: Final = {"game": "three-card-brag", "from_version": 1}
SAVE: Final = {"text": _TEXT}
PREVIEW: Final = {"text": _TEXT, "jurisdictions": ["mga"]}
SUBMIT: Final = {
    "jurisdictions": ["gb", "mga"],
    "certificate": "LAB-2026-0117",
    "note": "Higher limits at weekends.",
}
APPROVE: Final = {"digest": _DIGEST}
REJECT: Final = {"reason": "The Pair Bonus pays less than its certificate says."}
ACTIVATE: Final = {"reason": "As agreed for December.", "at": "2026-12-01T06:00:00Z"}
RETIRE: Final = {"reason": "Its certificate has run out."}
UNSCHEDULE: Final = {"reason": "Put off until its certificate is there."}

DRAFT: Final[dict[str, Any]] = {
    "draft_id": "01a22ddc-7c00-7000-8000-000000000001",
    "game": "three-card-brag",
    "number": 4,
    "state": "draft",
    "revision": 2,
    "started_from": 1,
    "created_by": "ada",
    "editors": ["ada"],
    "created_at": "2026-11-30T09:12:04.120000Z",
    "changed_at": "2026-11-30T09:20:41.003000Z",
    "submitted_by": None,
    "submitted_at": None,
    "digest": None,
    "document": None,
    "jurisdictions": None,
    "certificate": None,
    "note": None,
    "decided_by": None,
    "decided_at": None,
    "decision_reason": None,
    "version": None,
    "text": _TEXT,
    "problems": {"play.multiple": ["missing: give a whole number, 1 to 10"]},
}

VERSION: Final[dict[str, Any]] = {
    "game": "three-card-brag",
    "version": 2,
    "digest": _DIGEST,
    "state": "scheduled",
    "draft": 4,
    "published_at": "2026-11-30T10:02:17.400000Z",
    "approved_by": "grace",
    "jurisdictions": ["gb", "mga"],
    "certificate": "LAB-2026-0117",
    "note": "Higher limits at weekends.",
    "activated_at": None,
    "scheduled_at": "2026-12-01T06:00:00.000000Z",
    "scheduled_by": "joan",
    "retired_at": None,
}
