"""``migrate`` and ``db``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from casino_brag.cli.installation import data_dir_option, database, owner_connection
from casino_brag.db import migrations
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError


@click.group()
def migrate() -> None:
    """The database's schema."""


@migrate.command()
@data_dir_option
def up(data_dir: Path) -> None:
    """Apply the migrations that are pending."""
    with database(data_dir) as addresses, owner_connection(addresses) as conn:
        applied = migrations.migrate(conn, migrations.shipped_migrations())
    for migration in applied:
        click.echo(f"applied {migration.file_name}")
    click.echo("The schema is up to date.")


@migrate.command()
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@data_dir_option
def status(data_dir: Path, as_json: bool) -> None:
    """List the migrations and when each was applied."""
    with database(data_dir) as addresses, owner_connection(addresses) as conn:
        listed = migrations.status(conn, migrations.shipped_migrations())
    rows = [(migration.file_name, at.isoformat() if at else None) for migration, at in listed]
    if as_json:
        click.echo(json.dumps([{"file": file, "applied_at": at} for file, at in rows]))
        return
    for file, at in rows:
        click.echo(f"{at or 'pending':<35}{file}")


@migrate.command()
@data_dir_option
def verify(data_dir: Path) -> None:
    """Check that the database was made by exactly these migrations."""
    with database(data_dir) as addresses, owner_connection(addresses) as conn:
        migrations.verify(conn, migrations.shipped_migrations())
    click.echo("The schema is what this version expects.")


@click.group()
def db() -> None:
    """The database itself."""


@db.command()
@click.option(
    "--role", type=click.Choice([role.value for role in Role]), default=Role.APP.value, show_default=True
)
@data_dir_option
def url(role: str, data_dir: Path) -> None:
    """Print the database's address, for psql and other tools.

    An embedded server that nobody else uses stops when this command ends: keep `casino-brag serve` running.
    """
    with database(data_dir) as addresses:
        address = {Role.APP: addresses.app, Role.OWNER: addresses.owner, Role.SUPERUSER: addresses.superuser}[
            Role(role)
        ]
    if address is None:
        raise SetUpError("DATABASE_URL names the database; its superuser's address is not ours to know.")
    click.echo(address)
