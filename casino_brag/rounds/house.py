"""What rounds need beside a connection: paytables, the seal, random numbers and their upkeep, operators' wallets."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from casino_brag.catalogue.paytables import Shelf
from casino_brag.catalogue.signing import signature
from casino_brag.rng import Generator, RngUnavailable
from casino_brag.rounds.upkeep import Upkeep
from casino_brag.sealing import Sealer
from casino_brag.wallet.seamless import Wallets


@dataclass(frozen=True, slots=True)
class House:
    """Shared by all requests of a process, whose threads may use it at once; holds no connection.

    `sealing_lag_seconds` is how long ago the log may have been sealed where a round is opened; 0 is no limit.
    """

    shelf: Shelf
    sealer: Sealer
    generator: Generator
    upkeep: Upkeep = field(default_factory=Upkeep)
    wallets: Wallets = field(default_factory=lambda: Wallets(signature))
    sealing_lag_seconds: int = 0

    @classmethod
    def with_keys(
        cls, seal_keys: Mapping[str, bytes], *, threads: int = 8, sealing_lag_seconds: int = 0
    ) -> House:
        """The house of a process.  One whose generator fails its tests deals nothing, and still finishes rounds.

        Of its `threads` one operator's wallet may hold half, and all wallets together all but two.
        """
        wallets = Wallets(signature, calls_max=max(1, threads // 2), calls_max_in_all=max(1, threads - 2))
        house = cls(
            Shelf(),
            Sealer(seal_keys),
            Generator(),
            wallets=wallets,
            sealing_lag_seconds=sealing_lag_seconds,
        )
        with suppress(RngUnavailable):  # it is latched, on record, and answered to whoever wants a round
            house.generator.start()
        return house

    def sealing_is_behind(self, attended_at: datetime, now: datetime) -> bool:
        """Whether the log was sealed too long ago for a round to be opened."""
        limit = timedelta(seconds=self.sealing_lag_seconds)
        return bool(limit) and now - attended_at > limit

    @classmethod
    def without_dealing(cls, seal_keys: Mapping[str, bytes]) -> House:
        """The house of a process that finishes rounds and never deals: its generator is not started."""
        return cls(Shelf(), Sealer(seal_keys), Generator())
