"""What a worker process holds, and how a view gets at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from flask import current_app

from casino_brag.config import Config
from casino_brag.db.pool import Database
from casino_brag.rounds.house import House

EXTENSION: Final = "casino_brag"


@dataclass(frozen=True, slots=True)
class Service:
    """The configuration, the database, and what rounds need beside it."""

    config: Config
    database: Database
    house: House

    @classmethod
    def of(cls, config: Config) -> Service:
        """The service that a configuration describes.  Nothing is connected yet."""
        return cls(
            config,
            Database(config.database_url, pool_size=config.pool_size),
            House.with_keys(
                config.seal_keys,
                threads=config.pool_size,
                sealing_lag_seconds=config.sealing_lag_seconds,
            ),
        )


def service() -> Service:
    """The current application's service."""
    return cast(Service, current_app.extensions[EXTENSION])
