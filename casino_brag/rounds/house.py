"""What dealing needs beside a connection: the published paytables and the seal."""

from __future__ import annotations

from dataclasses import dataclass

from casino_brag.catalogue.paytables import Shelf
from casino_brag.sealing import Sealer


@dataclass(frozen=True, slots=True)
class House:
    """Shared by all requests of a process; holds nothing that a request changes, and no connection."""

    shelf: Shelf
    sealer: Sealer
