"""What a page says once about what was done on the one before: carried over by a cookie that cannot be forged."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Final

from flask import Response, g, request

from casino_brag.staff.access import SignedIn
from casino_brag.web.console.cookies import drop, put

COOKIE: Final = "casino_brag_said"
KEPT_SECONDS: Final = 60


def flash(text: str, kind: str = "done") -> None:
    """Has the next page say this once; `kind`: done, note or problem."""
    g.setdefault("to_say", []).append((kind, text))


def keep_said(response: Response) -> Response:
    """Carries what is still to be said to the next page, in a cookie that only this session's pages believe."""
    who: SignedIn | None = g.get("who")
    to_say = g.get("to_say")
    if to_say and who is not None:
        text = base64.urlsafe_b64encode(json.dumps(to_say).encode()).decode()
        return put(response, COOKIE, f"{text}.{_seal(who, text)}", KEPT_SECONDS)
    return drop(response, COOKIE) if g.get("was_said") else response


def said() -> list[tuple[str, str]]:
    """What this page has to say: kept from the last one, and said since."""
    now: list[tuple[str, str]] = g.pop("to_say", [])
    who: SignedIn | None = g.get("who")
    text, _, seal = request.cookies.get(COOKIE, "").partition(".")
    if who is None or not text:
        return now
    g.was_said = True
    if not hmac.compare_digest(seal.encode(), _seal(who, text).encode()):
        return now
    return [(kind, said) for kind, said in json.loads(base64.urlsafe_b64decode(text))] + now


def _seal(who: SignedIn, text: str) -> str:
    return hmac.new(who.csrf.encode(), b"said " + text.encode(), "sha256").hexdigest()
