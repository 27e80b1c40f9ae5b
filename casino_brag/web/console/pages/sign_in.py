"""The way in and out: name and password, a code, joining by a link, signing out."""

from __future__ import annotations

import hmac
from typing import Any, Final
from urllib.parse import quote

import psycopg
import segno
from flask import Blueprint, Response, request
from markupsafe import Markup

from casino_brag.errors import Code, ServiceError, invalid
from casino_brag.staff.access import SignedIn, awaiting_code, give_code, give_password, sign_out
from casino_brag.staff.factors import Enrolment
from casino_brag.staff.invitations import GONE, invited, join, offer_to
from casino_brag.web.console.cookies import drop, put
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.shell import COOKIE, HOME, SIGN_IN, back_to, doorway, local_path, page, render
from casino_brag.web.requests import address
from casino_brag.web.service import service

blueprint = Blueprint("sign_in", __name__)

CODE: Final = "/console/code"


@doorway(blueprint, "/sign-in", methods=("GET", "POST"))
def give_name() -> Response:
    """Name and password."""
    form = posted()
    onward = local_path((form if form.sent else asked()).value("next"))
    with form.attempt():
        if form.sent:
            secret = give_password(
                service().database.connection,
                form.value("name").strip().lower(),  # as names are: telephones begin with a capital
                form.value("password"),
                address(),
            )
            return put(back_to(f"{CODE}?next={quote(onward)}"), COOKIE, secret)
    return sign_in_page(form, onward)


@doorway(blueprint, "/code", methods=("GET", "POST"))
def code() -> Response:
    """The code of whoever gave the password just now."""
    form = posted()
    onward = local_path((form if form.sent else asked()).value("next"))
    secret = request.cookies.get(COOKIE, "")
    with service().database.connection() as conn:
        awaiting = awaiting_code(conn, secret)
        if awaiting is None:
            return back_to(f"{SIGN_IN}?next={quote(onward)}")
        with form.attempt():
            if form.sent:
                if not hmac.compare_digest(form.value("_csrf").encode(), awaiting.csrf.encode()):
                    raise ServiceError(Code.FORBIDDEN, "This form is an older one. Send it once more.")
                new_secret = give_code(conn, service().house.sealer, secret, form.value("code"), address())
                return put(back_to(onward), COOKIE, new_secret)
    return render("code.html.j2", form=form, onward=onward, awaiting=awaiting, status=form.status)


@doorway(blueprint, "/join/<token>", methods=("GET", "POST"))
def join_by(token: str) -> Response:
    """Password and authenticator of somebody who was invited, who is signed in with that; the recovery codes, once."""
    form, sealer = posted(), service().house.sealer
    with service().database.connection() as conn:
        whom = invited(conn, token)
    if whom is None:
        raise ServiceError(Code.NOT_FOUND, GONE)
    with form.attempt():
        if form.sent:
            if form.value("password") != form.value("again"):
                raise invalid("again", "The two are not the same.")
            joined = join(
                service().database.connection,
                sealer,
                token,
                form.value("password"),
                form.value("offer"),
                form.value("new_code"),
                address(),
                join_code=form.value("join_code"),
            )
            shown = render("recovery_codes.html.j2", codes=joined.codes, onward=HOME, done="Go on")
            return put(shown, COOKIE, joined.secret)
    enrolment = offer_to(sealer, whom, form.value("offer"))
    return render(
        "join.html.j2",
        form=form,
        whom=whom,
        path=f"/console/join/{token}",
        offer=enrolment,
        picture=picture(enrolment),
        status=form.status,
    )


@page(blueprint, "/sign-out", methods=("POST",))
def leave(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Ends the session."""
    sign_out(conn, who)
    return drop(back_to(SIGN_IN), COOKIE)


def sign_in_page(form: Form, onward: str) -> Response:
    """The ways in, and why the one that was tried does not lead in."""
    return render(
        "sign_in.html.j2", form=form, onward=onward, provider=service().provider, status=form.status
    )


def picture(enrolment: Enrolment) -> Markup:
    """What an authenticator's camera reads of a secret."""
    drawn = segno.make(enrolment.uri, error="m").svg_inline(scale=5, border=4, dark="#000", light="#fff")
    return Markup(drawn)  # noqa: S704 - made of squares alone
