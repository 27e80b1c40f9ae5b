"""The random number module: an HMAC_DRBG of SP 800-90A, seeds of rounds, and the deals that follow from them.

It is a boundary of its own: the standard library only, nothing of ours imported, integers only.  There is no seed
to set, no card to force, and no second source to fall back to: when something fails, `RngUnavailable` is raised
until the process ends, and no round is opened.

Read `hmac_drbg` (the algorithm), `entropy` (what feeds it), `generator` (its states and guards), `seeds` (from a
seed to a deal), `bounded` and `deal` (from words to cards), `known_answers` and `module` (how it tests itself).
"""

from casino_brag.rng import seeds
from casino_brag.rng.bounded import OutOfRange
from casino_brag.rng.deal import DEALS, Draw, rank, unrank
from casino_brag.rng.generator import Drawn, Event, EventKind, Generator, RngUnavailable, State
from casino_brag.rng.module import MODULE_DIGEST
from casino_brag.rng.seeds import PROTOCOL, commitment_value, draw_seed

__all__ = [
    "DEALS",
    "MODULE_DIGEST",
    "PROTOCOL",
    "Draw",
    "Drawn",
    "Event",
    "EventKind",
    "Generator",
    "OutOfRange",
    "RngUnavailable",
    "State",
    "commitment_value",
    "draw_seed",
    "rank",
    "seeds",
    "unrank",
]
