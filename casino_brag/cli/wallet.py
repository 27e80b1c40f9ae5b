"""``wallet``: operators' own wallets, as this service calls them."""

from __future__ import annotations

import json
import os
import sys
from typing import Final
from urllib.parse import urlsplit

import click

from casino_brag.cli.arguments import Parsed, json_option
from casino_brag.cli.reconcile import reconcile_command
from casino_brag.conformance.bench import Key, Subject
from casino_brag.conformance.kit import FUNDS_MIN_MINOR, NAMES, CouldNotRun
from casino_brag.conformance.kit import run as run_checks
from casino_brag.conformance.report import Outcome
from casino_brag.outbound import post
from casino_brag.wallet.seamless import ANSWER_SECONDS

KEY_VARIABLE: Final = "CASINO_BRAG_WALLET_SECRET"
SECOND_KEY_VARIABLE: Final = "CASINO_BRAG_WALLET_SECOND_SECRET"

COULD_NOT_RUN: Final = 2
"""The exit code when no check could be run; 1 is kept for a wallet on which one failed."""


def _visible(text: str) -> str:
    if not text or not all("!" <= character <= "~" for character in text):
        raise ValueError(f"{text!r} is not made of visible ASCII characters")
    return text


def _wallet_url(text: str) -> str:
    parts = urlsplit(_visible(text))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{text!r} is no address of a wallet: write it like https://wallet.example.com/brag")
    return text.rstrip("/")


def _key(variable: str) -> Parsed[Key]:
    """A key by its id and its secret; the secret is in an environment variable where the text has none."""

    def parse(text: str) -> Key:
        key_id, _, written = text.partition(":")
        secret = written or os.environ.get(variable, "")
        if not secret:
            raise ValueError(f"no secret: write KEY_ID:SECRET, or put the secret into {variable}")
        return Key(_visible(key_id), secret)

    return Parsed("key", parse)


@click.group()
def wallet() -> None:
    """Operators' own wallets, as this service calls them."""


wallet.add_command(reconcile_command)


@wallet.command(
    epilog=f"A secret in the argument list is seen by every user of the machine. Write --key KEY_ID alone and put the"
    f" secret into {KEY_VARIABLE}, that of the second key into {SECOND_KEY_VARIABLE}."
)
@click.argument("url", type=Parsed("url", _wallet_url))
@click.option(
    "--operator",
    required=True,
    type=Parsed("name", _visible),
    help="The name the wallet knows us to call for.",
)
@click.option(
    "--key",
    required=True,
    metavar="KEY_ID[:SECRET]",
    type=_key(KEY_VARIABLE),
    help="A key the wallet accepts.",
)
@click.option(
    "--second-key",
    metavar="KEY_ID[:SECRET]",
    type=_key(SECOND_KEY_VARIABLE),
    help="The other live key, if there is one.",
)
@click.option(
    "--player",
    default="conformance",
    show_default=True,
    help=f"A player at the wallet who holds {FUNDS_MIN_MINOR} minor units or more of the first currency, and whom no"
    " limits keep from staking them. Some units of each other currency let its checks be tried.",
)
@click.option(
    "--currency",
    "currencies",
    multiple=True,
    default=("GBP", "JPY", "KWD", "XBT"),
    show_default=True,
    help="A currency to check; may be repeated. The first one is used throughout.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    type=click.Choice(NAMES),
    help="Run this check alone; may be repeated.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 60),
    default=ANSWER_SECONDS,
    show_default=True,
    help="How long a call may take; the service itself waits no longer than the default.",
)
@json_option
def check(
    url: str,
    operator: str,
    key: Key,
    second_key: Key | None,
    player: str,
    currencies: tuple[str, ...],
    only: tuple[str, ...],
    seconds: float,
    as_json: bool,
) -> None:
    """Check the wallet at URL: whether it keeps money as this service needs it to.

    Debits, credits and cancels are made in the name of the player, as play makes them, and the balance is put back
    after each check. Use a test player, at a wallet of no real money.

    The exit code is 0 when all checks held, 1 when one failed, and 2 when none could be run.
    """
    subject = Subject(url, operator, key, second_key, player, currencies, seconds)
    try:
        report = run_checks(subject, post, only or NAMES)
    except CouldNotRun as reason:
        click.echo(f"casino-brag: {reason}", err=True)
        sys.exit(COULD_NOT_RUN)
    click.echo(json.dumps(report.document(), indent=1) if as_json else "\n".join(report.lines()))
    sys.exit(1 if report.count(Outcome.FAILED) else 0)
