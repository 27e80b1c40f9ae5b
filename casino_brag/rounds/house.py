"""What dealing needs beside a connection: the published paytables, the seal, the random numbers and their upkeep."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from casino_brag.catalogue.paytables import Shelf
from casino_brag.rng import Generator, RngUnavailable
from casino_brag.rounds.upkeep import Upkeep
from casino_brag.sealing import Sealer


@dataclass(frozen=True, slots=True)
class House:
    """Shared by all requests of a process, whose threads may use it at once; holds no connection."""

    shelf: Shelf
    sealer: Sealer
    generator: Generator
    upkeep: Upkeep = field(default_factory=Upkeep)

    @classmethod
    def with_keys(cls, seal_keys: Mapping[str, bytes]) -> House:
        """The house of a process.  One whose generator fails its tests deals nothing, and still finishes rounds."""
        house = cls(Shelf(), Sealer(seal_keys), Generator())
        with suppress(RngUnavailable):  # it is latched, on record, and answered to whoever wants a round
            house.generator.start()
        return house
