"""The way in by the operator's identity provider, for whoever has linked an account there on the page for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import psycopg
from flask import Blueprint, Response, g, request

from casino_brag.errors import Code, ServiceError
from casino_brag.staff.access import SignedIn, refuse_locked_out, signed_in
from casino_brag.staff.provider import WAY_SECONDS, Account, link, linked, record_failure, sign_in_by, unlink
from casino_brag.web.console.cookies import drop, origin, put
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.pages.account import ACCOUNT
from casino_brag.web.console.pages.sign_in import CODE, sign_in_page
from casino_brag.web.console.shell import (
    COOKIE,
    HOME,
    back_to,
    doorway,
    local_path,
    page,
    render,
    require_proof,
)
from casino_brag.web.requests import address
from casino_brag.web.service import service

if TYPE_CHECKING:
    from casino_brag.web.console.oidc import Provider, Way

blueprint = Blueprint("provider", __name__)

WAY_COOKIE: Final = "casino_brag_provider"
"""Holds the way to the provider that the browser is on."""

RETURN: Final = "/console/provider/return"
FINISH: Final = "/console/provider/finish"

ONWARD_MAX: Final = 500
"""Who wants to go on to a longer address goes home: the cookie holds it, and browsers and servers take 4096 bytes."""


@doorway(blueprint, "/provider", methods=("POST",))
def leave_to_sign_in() -> Response:
    """Off to the provider, to sign in."""
    form = posted()
    onward = local_path(form.value("next"))
    with form.attempt():
        return _leave(onward if len(onward) <= ONWARD_MAX and onward.isascii() else HOME)
    return sign_in_page(form, onward)


@page(blueprint, "/account/provider", methods=("GET", "POST"), nav="account", connected=False)
def leave_to_link(who: SignedIn) -> Response:
    """Off to the provider, to link an account there."""
    form, connect = posted(), service().database.connection
    with form.attempt():
        if form.sent:
            with connect() as conn:
                require_proof(conn, who, form, always=True)
            return _leave(ACCOUNT, who)
    with connect() as conn:
        return _account_page(conn, who, form)


@page(blueprint, "/account/provider/unlink", methods=("POST",), nav="account")
def unlink_account(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Ends it that the account leads in."""
    form = posted()
    with form.attempt():
        require_proof(conn, who, form)
        ended = unlink(conn, who)
        return back_to(ACCOUNT, "The account is linked no more." if ended else "No account was linked.")
    return _account_page(conn, who, form)


@doorway(blueprint, "/provider/return")
def come_back() -> Response:
    """Where the provider sends the browser.  One that comes from another site brings no cookie of ours: from here on it
    does."""
    brought = {name: request.args[name] for name in ("state", "code") if name in request.args}
    return render("onward.html.j2", where=f"{FINISH}?{urlencode(brought)}", name="the console")


@doorway(blueprint, "/provider/finish")
def finish() -> Response:
    """Finds out whose account it is, and signs the person in or links it."""
    form, way = asked(), None
    with form.attempt():
        way = _provider().way(request.cookies.get(WAY_COOKIE, ""), form.value("state"))
        done = _link_account if way.session_id else _sign_in
        return drop(done(way, form.value("code")), WAY_COOKIE)
    if way is None:  # the browser may be on another, which goes on
        return sign_in_page(form, HOME)
    return drop(sign_in_page(form, way.onward), WAY_COOKIE)


def _account_page(conn: psycopg.Connection[Any], who: SignedIn, form: Form) -> Response:
    account = linked(conn, who.person)
    return render(
        "account_provider.html.j2", form=form, provider=_provider(), linked=account, status=form.status
    )


def _leave(onward: str, who: SignedIn | None = None) -> Response:
    provider = _provider()
    way = provider.begin(onward, "" if who is None else str(who.session_id))
    # The policy keeps a form from leading to another site; a page may.
    shown = render("onward.html.j2", where=provider.address(way, origin() + RETURN), name=provider.host)
    return put(shown, WAY_COOKIE, provider.sealed(way), WAY_SECONDS)


def _sign_in(way: Way, code: str) -> Response:
    connect = service().database.connection
    with connect() as conn:
        refuse_locked_out(conn, address())
    account = _account(way, code, None)
    with connect() as conn:
        secret = sign_in_by(conn, account, address())
    return put(back_to(f"{CODE}?next={quote(way.onward)}"), COOKIE, secret)


def _link_account(way: Way, code: str) -> Response:
    connect = service().database.connection
    with connect() as conn:
        who = signed_in(conn, request.cookies.get(COOKIE, ""))
    if who is None or str(who.session_id) != way.session_id:
        raise ServiceError(
            Code.UNAUTHENTICATED, "The session in which you set out has ended. Sign in, and begin again."
        )
    g.who = who
    try:
        account = _account(way, code, who.person.name)
        with connect() as conn:
            link(conn, who, account, address())
    except ServiceError as refused:
        return back_to(ACCOUNT, refused.detail, "problem")
    return back_to(ACCOUNT, f"From now on you can sign in at {_provider().host}.")


def _account(way: Way, code: str, name: str | None) -> Account:
    """Whose code it is.  One that does not hold is put on record, of the person of this name."""
    try:
        return _provider().account(way, origin() + RETURN, code)
    except ServiceError as refused:
        if code and refused.code is Code.UNAUTHENTICATED:
            with service().database.connection() as conn:
                record_failure(conn, "provider", name, address())
        raise


def _provider() -> Provider:
    provider = service().provider
    if provider is None:
        raise ServiceError(Code.NOT_FOUND, "This service knows no provider to sign in at.")
    return provider
