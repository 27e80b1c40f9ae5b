"""What a worker process holds, and how a view gets at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from flask import current_app

from casino_brag.config import Config
from casino_brag.db.pool import Database
from casino_brag.rounds.house import House

if TYPE_CHECKING:
    from casino_brag.web.console.oidc import Provider

EXTENSION: Final = "casino_brag"


@dataclass(frozen=True, slots=True)
class Service:
    """The configuration, the database, what rounds need beside it, and where else staff may sign in."""

    config: Config
    database: Database
    house: House
    provider: Provider | None = None

    @classmethod
    def of(cls, config: Config) -> Service:
        """The service that a configuration describes.  Nothing is connected yet."""
        house = House.with_keys(
            config.seal_keys, threads=config.pool_size, sealing_lag_seconds=config.sealing_lag_seconds
        )
        provider = None
        if config.oidc is not None:
            from casino_brag.web.console.oidc import Provider  # noqa: PLC0415 - an extra

            provider = Provider(config.oidc, house.sealer)
        return cls(config, Database(config.database_url, pool_size=config.pool_size), house, provider)


def service() -> Service:
    """The current application's service."""
    return cast(Service, current_app.extensions[EXTENSION])
