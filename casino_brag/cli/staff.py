"""``staff``: people, what each may do, how they come to sign in, and the tokens their programs call with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import psycopg

from casino_brag import outbound
from casino_brag.cli.arguments import ACTOR, Parsed, json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection
from casino_brag.db.clock import rfc3339
from casino_brag.staff.invitations import INVITATION_HOURS, invite, reset, unlock
from casino_brag.staff.people import (
    TOKEN_DAYS,
    TOKEN_DAYS_MAX,
    Role,
    Said,
    TokenState,
    add_staff,
    has_approver,
    issue_token,
    revoke,
    set_roles,
    users_and_rights,
)

role_option = click.option(
    "--role",
    "roles",
    type=click.Choice([role.value for role in Role]),
    multiple=True,
    required=True,
    help="What the person may do; may be repeated.",
)


def _address(text: str) -> str:
    """The service's address, without a slash at its end; a link holds a secret, so nothing unencrypted but to here."""
    problem = outbound.problem_of(text)
    if problem is None and ("?" in text or urlsplit(text).path not in ("", "/")):
        problem = "says more than where the service is"
    if problem is not None:
        raise ValueError(
            f"{text!r} {problem}: write it as https://casino.example.com, or on this machine http://127.0.0.1:8080"
        )
    return text.removesuffix("/")


def _said_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        data_dir_option,
        click.option("--authoriser", help="Who has allowed it, for the record."),
        click.option("--reason", help="Why, for the record."),
    ):
        command = option(command)
    return command


@click.group()
def staff() -> None:
    """People who check, approve and run, and the tokens they call with."""


@staff.command()
@click.argument("name")
@role_option
@_said_options
def add(
    name: str, roles: tuple[str, ...], reason: str | None, authoriser: str | None, data_dir: Path
) -> None:
    """Add a person with these roles."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        add_staff(conn, name, map(Role, roles), _said(reason, authoriser))
    click.echo(f"{name} is staff. For a token: staff token {name} --label WHAT-FOR")


@staff.command("roles")
@click.argument("name")
@role_option
@_said_options
def change_roles(
    name: str, roles: tuple[str, ...], reason: str | None, authoriser: str | None, data_dir: Path
) -> None:
    """Give a person these roles in place of those held before."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        changed = _telling_of_the_last(
            conn, lambda: set_roles(conn, name, map(Role, roles), _said(reason, authoriser))
        )
    click.echo("Done." if changed else "It was so before.")


@staff.command()
@click.argument("name")
@click.option("--label", required=True, help="What the token is for, for lists and the record.")
@click.option(
    "--days",
    type=click.IntRange(1, TOKEN_DAYS_MAX),
    default=TOKEN_DAYS,
    show_default=True,
    help="How long it is good.",
)
@json_option
@_said_options
def token(
    name: str,
    label: str,
    days: int,
    as_json: bool,
    reason: str | None,
    authoriser: str | None,
    data_dir: Path,
) -> None:
    """Give a person a token, and show it this once."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        issued = issue_token(conn, name, label, _said(reason, authoriser), days=days)
    shown = {
        "name": issued.name,
        "token_id": issued.token_id,
        "token": issued.token,
        "expires_at": rfc3339(issued.expires_at),
    }
    if as_json:
        click.echo(json.dumps(shown))
        return
    for what, value in shown.items():
        click.echo(f"{what:<12}{value}")
    click.echo("The token is not shown again.")


@staff.command("revoke")
@click.argument("name_or_token_id")
@_said_options
def end(name_or_token_id: str, reason: str | None, authoriser: str | None, data_dir: Path) -> None:
    """End a token, or retire a person, whose tokens all end then.  A name is not given to anybody else."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        changed = _telling_of_the_last(
            conn, lambda: revoke(conn, name_or_token_id, _said(reason, authoriser))
        )
    click.echo("Done." if changed else "It was so before.")


@staff.command("invite")
@click.argument("name")
@click.option(
    "--base-url",
    type=Parsed("url", _address),
    default="http://127.0.0.1:8080",
    show_default=True,
    help="The address at which the person reaches the service.",
)
@json_option
@_said_options
def make_link(
    name: str, base_url: str, as_json: bool, reason: str | None, authoriser: str | None, data_dir: Path
) -> None:
    """Make a link by which a person joins the console, and show it this once.  A link before ends."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        made = invite(conn, name, _said(reason, authoriser))
    url = base_url + made.path
    if as_json:
        shown = {"name": name, "url": url, "path": made.path, "expires_at": rfc3339(made.expires_at)}
        click.echo(json.dumps(shown))
        return
    click.echo(
        f"For {name} alone, within {INVITATION_HOURS} hours. The link is good once, and is not shown again:"
    )
    click.echo(url)


@staff.command("unlock")
@click.argument("name")
@_said_options
def lift_lock(name: str, reason: str | None, authoriser: str | None, data_dir: Path) -> None:
    """Let a person sign in who is locked out after failures."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        changed = unlock(conn, name, _said(reason, authoriser))
    click.echo("Done." if changed else "The account is not locked.")


@staff.command("reset")
@click.argument("name")
@_said_options
def begin_anew(name: str, reason: str | None, authoriser: str | None, data_dir: Path) -> None:
    """End a person's password, second factor and sessions, of which something is lost.  Then invite anew."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        changed = reset(conn, name, _said(reason, authoriser))
    click.echo(f"Done. For a link: staff invite {name}" if changed else "The person has not joined.")


@staff.command("list")
@json_option
@data_dir_option
def list_staff(as_json: bool, data_dir: Path) -> None:
    """Show everybody who is or was staff, with roles and tokens."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        people = users_and_rights(conn)
    if as_json:
        click.echo(json.dumps(people))
        return
    for person in people:
        retired = "" if person["retired_at"] is None else f"   retired {person['retired_at']}"
        click.echo(f"{person['name']:<24}{', '.join(person['roles'])}{retired}")
        for held in person["tokens"]:
            state = f"until {held['expires_at']}" if held["state"] == TokenState.LIVE else held["state"]
            click.echo(f"    {held['token_id']}  {state}  {held['label']}")


def _telling_of_the_last(conn: psycopg.Connection[Any], change: Callable[[], bool]) -> bool:
    """Makes a change, and says so where nobody is left who approves."""
    had_approver = has_approver(conn)
    changed = change()
    if had_approver and not has_approver(conn):
        click.echo(
            "Nobody is left who approves paytables: from now on the files take effect again, at the next start.",
            err=True,
        )
    return changed


def _said(reason: str | None, authoriser: str | None) -> Said:
    return Said(actor=ACTOR, authoriser=authoriser, reason=reason)
