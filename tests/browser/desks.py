"""What the tests of the console share: the types of their fixtures, and how somebody is signed in at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from playwright.sync_api import Page, ViewportSize

from tests.colleagues import Colleague

Windows = Callable[..., Page]
"""Opens a window in which nobody is signed in, with the options of `tests.chromium.window`."""

Desk = Callable[..., Page]
"""Opens a window in which somebody is signed in: ``desk(who, "/paytables", …)``, with the same options."""

Hired = Callable[..., Colleague]
"""Somebody new with these roles, who has joined."""

WIDE: Final = ViewportSize(width=1280, height=900)
NARROW: Final = ViewportSize(width=390, height=844)


def sign_in(page: Page, who: Colleague) -> None:
    """Has somebody signed in in the window of a page, without the way there."""
    secret = who.signed_in().http.cookies.get("casino_brag_staff")
    assert secret is not None
    page.context.add_cookies(
        [
            {
                "name": "casino_brag_staff",
                "value": secret,
                "domain": "127.0.0.1",
                "path": "/console",
                "httpOnly": True,
                "sameSite": "Strict",
            }
        ]
    )
