"""What a person changes alone: password, authenticator, recovery codes, tokens, sessions."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import psycopg
from flask import Blueprint, Response

from casino_brag.errors import Code, ServiceError, SetUpError, invalid
from casino_brag.staff.access import SignedIn, end_session, recovery_codes_left, sessions
from casino_brag.staff.acting import reason_if_any
from casino_brag.staff.credentials import (
    change_factor,
    change_password,
    offer_anew,
    renew_recovery_codes,
)
from casino_brag.staff.people import (
    TOKEN_DAYS,
    TOKEN_DAYS_MAX,
    Said,
    issue_token,
    revoke,
    users_and_rights,
)
from casino_brag.staff.provider import linked
from casino_brag.web.console.forms import Form, posted
from casino_brag.web.console.pages.sign_in import picture
from casino_brag.web.console.shell import back_to, page, render, require_proof
from casino_brag.web.requests import address
from casino_brag.web.service import service

blueprint = Blueprint("account", __name__)

ACCOUNT: Final = "/console/account"


@page(blueprint, "/account", nav="account")
def account(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Everything about oneself at a glance."""
    return _account(conn, who, Form({}, sent=False))


@page(blueprint, "/account/password", methods=("GET", "POST"), nav="account", connected=False)
def password(who: SignedIn) -> Response:
    """Another password."""
    form = posted()
    with form.attempt():
        if form.sent:
            if form.value("password") != form.value("again"):
                raise invalid("again", "The two are not the same.")
            connect = service().database.connection
            change_password(connect, who, form.value("current"), form.value("password"), address())
            return back_to(ACCOUNT, "You have another password, and are signed out everywhere else.")
    return render("account_password.html.j2", form=form, status=form.status)


@page(blueprint, "/account/authenticator", methods=("GET", "POST"), nav="account")
def authenticator(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Another authenticator, and with it other recovery codes."""
    form, sealer = posted(), service().house.sealer
    with form.attempt():
        if form.sent:
            require_proof(conn, who, form, always=True)
            codes = change_factor(conn, sealer, who, form.value("offer"), form.value("new_code"))
            return _recovery_codes(codes)
    offer = offer_anew(sealer, who, form.value("offer"))
    return render(
        "account_authenticator.html.j2", form=form, offer=offer, picture=picture(offer), status=form.status
    )


@page(blueprint, "/account/recovery-codes", methods=("GET", "POST"), nav="account")
def recovery_codes(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Other recovery codes in place of those before."""
    form = posted()
    with form.attempt():
        if form.sent:
            require_proof(conn, who, form, always=True)
            return _recovery_codes(renew_recovery_codes(conn, who))
    return render("account_recovery.html.j2", form=form, status=form.status)


@page(blueprint, "/account/tokens", methods=("POST",), nav="account")
def give_token(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """A token for a program of one's own, shown this once."""
    form = posted()
    with form.attempt():
        require_proof(conn, who, form, always=True)
        days, said = form.number("days"), Said(actor=who.person.actor)
        if days is None or not 1 <= days <= TOKEN_DAYS_MAX:
            raise invalid("days", f"Give a number of days from 1 to {TOKEN_DAYS_MAX}.")
        try:
            issued = issue_token(conn, who.person.name, form.value("label"), said, days=days)
        except SetUpError as refused:
            raise invalid("label", str(refused)) from refused
        return render("account_token.html.j2", issued=issued)
    return _account(conn, who, form)


@page(blueprint, "/account/tokens/<token_id>/revoke", methods=("POST",), nav="account")
def end_token(conn: psycopg.Connection[Any], who: SignedIn, token_id: str) -> Response:
    """Ends a token of one's own."""
    if token_id not in {token["token_id"] for token in _of_myself(conn, who)["tokens"]}:
        raise ServiceError(Code.NOT_FOUND, "You have no such token.")
    form = posted()
    with form.attempt():
        require_proof(conn, who, form)
        revoke(conn, token_id, Said(actor=who.person.actor, reason=reason_if_any(form.value("reason"))))
        return back_to(ACCOUNT, "The token is good no more.")
    return _account(conn, who, form)


@page(blueprint, "/account/sessions/<uuid:session_id>/end", methods=("POST",), nav="account")
def end(conn: psycopg.Connection[Any], who: SignedIn, session_id: UUID) -> Response:
    """Ends a session of one's own."""
    ended = end_session(conn, who.person, session_id)
    return back_to(ACCOUNT, "The session has ended." if ended else "It had ended before.")


def _account(conn: psycopg.Connection[Any], who: SignedIn, form: Form) -> Response:
    return render(
        "account.html.j2",
        form=form,
        provider=service().provider,
        linked=linked(conn, who.person),
        codes_left=recovery_codes_left(conn, who.person),
        tokens=_of_myself(conn, who)["tokens"],
        sessions=sessions(conn, staff_id=who.person.staff_id, limit=20),
        days=TOKEN_DAYS,
        status=form.status,
    )


def _of_myself(conn: psycopg.Connection[Any], who: SignedIn) -> dict[str, Any]:
    return next(person for person in users_and_rights(conn) if person["name"] == who.person.name)


def _recovery_codes(codes: list[str]) -> Response:
    return render("recovery_codes.html.j2", codes=codes, onward=ACCOUNT, done="Back to the account")
