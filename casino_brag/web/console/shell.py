"""What every page of the console stands on: who is signed in, what they may do, and how a page is drawn.

A page is a function under :func:`page`.  It is given a connection and the person, and returns what :func:`render`
makes, or :func:`back_to` another page.  Templates are in ``web/templates/console``: they extend ``base.html.j2`` and
take their parts from ``_parts.html.j2``.

    blueprint = Blueprint("rounds", __name__)

    @page(blueprint, "/rounds/<uuid:round_id>/void", roles=(Role.OPERATIONS,), methods=("GET", "POST"), nav="rounds")
    def void(conn, who, round_id):
        form = posted()
        with form.attempt():
            if form.sent:
                propose(conn, who.person, ..., reason=form.value("reason"))
                return back_to("/console/rounds", "The void was proposed.")
        return render("void.html.j2", form=form, status=form.status)
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final
from urllib.parse import SplitResult, quote, urlsplit

import psycopg
from flask import Blueprint, Response, g, redirect, request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from casino_brag.errors import Code, ServiceError
from casino_brag.staff.access import SignedIn, require_fresh, signed_in
from casino_brag.staff.people import Role, record_call
from casino_brag.web.console.assets import static_url
from casino_brag.web.console.forms import Form
from casino_brag.web.console.looks import FILTERS
from casino_brag.web.console.saying import flash, said
from casino_brag.web.requests import address, body, call
from casino_brag.web.service import service

COOKIE: Final = "casino_brag_staff"
"""Holds the secret of a session."""

SIGN_IN: Final = "/console/sign-in"
HOME: Final = "/console/paytables"

EVERYONE: Final = tuple(Role)
"""Whoever is of staff, whatever the role."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask for what: one row of the console's table of permissions.  No roles: anybody, signed in or not."""

    method: str
    rule: str
    roles: tuple[Role, ...]


ACCESS: Final[list[Access]] = []
"""Every address of the console, as :func:`page` and :func:`doorway` have put them here."""


@dataclass(frozen=True, slots=True)
class NavItem:
    """A link of the navigation, shown to those who may follow it."""

    key: str
    label: str
    href: str
    roles: tuple[Role, ...] = EVERYONE


NAV: Final = (
    NavItem("paytables", "Paytables", "/console/paytables"),
    NavItem("approvals", "Approvals", "/console/approvals"),
    NavItem("simulations", "Simulations", "/console/simulations"),
    NavItem("live", "Live", "/console/live", (Role.AUDITOR, Role.OPERATIONS)),
    NavItem("rounds", "Rounds", "/console/rounds", (Role.AUDITOR, Role.OPERATIONS)),
    NavItem("games", "Games and limits", "/console/games", (Role.AUDITOR, Role.OPERATIONS)),
    NavItem("reports", "Reports", "/console/reports", (Role.AUDITOR, Role.OPERATIONS)),
    NavItem("audit", "Audit", "/console/audit", (Role.AUDITOR,)),
    NavItem("rng", "Random numbers", "/console/rng", (Role.AUDITOR,)),
    NavItem("people", "Staff", "/console/staff", (Role.AUDITOR, Role.OPERATIONS, Role.APPROVER)),
)

View = Callable[..., "str | Response"]


def page(
    blueprint: Blueprint,
    rule: str,
    *,
    roles: Sequence[Role] = EVERYONE,
    methods: Sequence[str] = ("GET",),
    nav: str = "",
    recorded: bool = True,
    poll: bool = False,
    connected: bool = True,
) -> Callable[[View], View]:
    """Makes a view ``(conn, who, **args)`` a page for those signed in who have one of these roles.

    `rule` is below ``/console``.  The connection commits by the statement; a view that needs a longer transaction
    opens it.  A POST is refused (forbidden) unless it comes from a page of this console and of this session.  `nav` is
    the key of the :data:`NAV` item that is shown as the present one, or ``account``.

    Each visit is put on record before it is answered, unless it is not `recorded`, as a preview is, or is a `poll`:
    what a page asks for by itself.  A poll does not keep the session from ending either.

    A view that is not `connected` is ``(who, **args)`` and takes connections itself.
    """

    def decorate(view: View) -> View:
        ACCESS.extend(Access(method, f"/console{rule}", tuple(roles)) for method in methods)

        @wraps(view)
        def serve(**args: Any) -> str | Response:
            g.nav = nav
            with service().database.connection() as conn:
                who = signed_in(conn, request.cookies.get(COOKIE, ""), active=not poll)
                if who is None:
                    return to_sign_in()
                g.who = who
                granted = may(who, roles)
                if not granted or (recorded and not poll):
                    # What was typed is not among it: what it brings about has entries of its own.
                    session = {"staff_session_id": str(who.session_id)}
                    record_call(conn, who.person.actor, who.read_at, session | call(None, granted))
                if not granted:
                    raise _not_for(who, roles)
                if request.method == "POST":
                    _refuse_foreign(who)
                if connected:
                    return view(conn, who, **args)
            return view(who, **args)

        blueprint.add_url_rule(rule, view.__name__, serve, methods=list(methods))
        return view

    return decorate


def doorway(blueprint: Blueprint, rule: str, *, methods: Sequence[str] = ("GET",)) -> Callable[[View], View]:
    """Makes a view ``(**args)`` a page for those not signed in yet.  A POST has to come from our own pages.

    The view takes connections itself, so that it holds none while it looks into a password.
    """

    def decorate(view: View) -> View:
        ACCESS.extend(Access(method, f"/console{rule}", ()) for method in methods)

        @wraps(view)
        def serve(**args: Any) -> str | Response:
            if request.method == "POST":
                _refuse_foreign(None)
            return view(**args)

        blueprint.add_url_rule(rule, view.__name__, serve, methods=list(methods))
        return view

    return decorate


def back_to(path: str, text: str = "", kind: str = "done") -> Response:
    """Sends the browser on to a page, which says `text` once."""
    if text:
        flash(text, kind)
    if request.headers.get("HX-Request"):
        return Response(status=204, headers={"HX-Redirect": path})
    answer = redirect(path, 303)
    assert isinstance(answer, Response)
    return answer


def may(who: SignedIn, roles: Sequence[Role]) -> bool:
    """Whether somebody has one of these roles, as far as a page shows what can be done; doing it asks anew."""
    return not who.person.roles.isdisjoint(roles)


def download(name: str, text: str, content_type: str) -> Response:
    """A text as a file to keep."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, content_type=content_type, headers=headers)


def require_proof(conn: psycopg.Connection[Any], who: SignedIn, form: Form, *, always: bool = False) -> None:
    """What comes before everything that matters: a code in the form's field ``code``, unless the last one is recent.

    It is asked for `always` before somebody gets another means to sign in or to call with: a cookie alone, even a
    fresh one, is not to become more than that.  The field is ``ui.proof(form, who, always)``.  Raises `ServiceError`
    invalid, told at it.  Not within a transaction.
    """
    require_fresh(conn, service().house.sealer, who, form.value("code"), address(), always=always)


def local_path(text: str, default: str = HOME) -> str:
    """The same when it is an address of this console and nothing else, as `next` of the sign-in has to be."""
    parts = _split(text)
    safe = (
        parts is not None
        and text.startswith("/console/")
        and not (parts.scheme or parts.netloc)
        and text.isprintable()
    )
    return text if safe and "\\" not in text and "//" not in text.partition("?")[0] else default


def to_sign_in() -> Response:
    """Sends whoever is not signed in to the sign-in, and from there to the page that was asked for.

    Nobody who sends a form is sent away from what was typed into it: that is unauthenticated.
    """
    if request.method != "GET":
        raise ServiceError(
            Code.UNAUTHENTICATED,
            "Your session has ended, and nothing was carried out. Sign in in another window, and do it again.",
        )
    if request.headers.get("HX-Request"):
        here = _split(request.headers.get("HX-Current-URL", ""))
        wanted = HOME if here is None else local_path(here.path + (f"?{here.query}" if here.query else ""))
        return Response(status=401, headers={"HX-Redirect": f"{SIGN_IN}?next={quote(wanted)}"})
    answer = redirect(f"{SIGN_IN}?next={quote(local_path(request.full_path.rstrip('?')))}", 303)
    assert isinstance(answer, Response)
    return answer


def render(template: str, *, status: int = 200, **values: Any) -> Response:
    """A whole page of this template, in the frame of ``base.html.j2``."""
    return _answer(template, status, {"said": said(), **values})


def fragment(template: str, *, status: int = 200, **values: Any) -> Response:
    """A part of a page, without the frame: what htmx puts into a page that is shown already."""
    return _answer(template, status, values)


def _answer(template: str, status: int, values: Mapping[str, Any]) -> Response:
    who: SignedIn | None = g.get("who")
    text = TEMPLATES.get_template(f"console/{template}").render(
        who=who, nav=g.get("nav", ""), nav_items=_nav(who), **values
    )
    return Response(text, status=status, content_type="text/html; charset=utf-8")


def _nav(who: SignedIn | None) -> list[NavItem]:
    return [item for item in NAV if who is not None and may(who, item.roles)]


def _csrf_field() -> Markup:
    """The hidden field that shows a form to be one of this session."""
    who: SignedIn | None = g.get("who")
    return Markup('<input type="hidden" name="_csrf" value="{}">').format(who.csrf) if who else Markup()


TEMPLATES: Final = Environment(
    loader=PackageLoader("casino_brag.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters.update(FILTERS)
TEMPLATES.globals.update(static_url=static_url, csrf_field=_csrf_field)


def is_from_here() -> bool:
    """Whether this request was sent by a page of this service.

    A browser says where a request comes from, in one header or the other, and no page can keep it from doing so.
    """
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    if origin is None:
        return True
    parts = _split(origin)
    return parts is not None and parts.netloc == request.host


def _split(address_given: str) -> SplitResult | None:
    """An address that a client gave, taken apart; None for one that is none, as ``http://[``."""
    try:
        return urlsplit(address_given)
    except ValueError:
        return None


def _refuse_foreign(who: SignedIn | None) -> None:
    """Refuses a POST that no page of this console has sent, and none of this session."""
    body()  # within its bounds and complete, or refused
    ours = is_from_here()
    if ours and who is not None:
        given = request.headers.get("X-CSRF-Token") or request.form.get("_csrf", "")
        ours = hmac.compare_digest(given.encode(), who.csrf.encode())
    if not ours:
        raise ServiceError(
            Code.FORBIDDEN,
            "This form is not of your present session, or of another site. Open the page again and send it from there.",
        )


def _not_for(who: SignedIn, roles: Sequence[Role]) -> ServiceError:
    own = ", ".join(sorted(who.person.roles))
    return ServiceError(
        Code.FORBIDDEN, f"This is for {' or '.join(roles)}; you are {own}. Ask somebody who is."
    )
