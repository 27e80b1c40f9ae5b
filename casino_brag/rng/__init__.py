"""The random number module: uniform deals of six cards from the operating system's entropy.

It is a boundary of its own: the standard library only, nothing of ours imported, integers only.  There is no
seed to set, no card to force, and no second source to fall back to: when entropy cannot be had, `RngUnavailable`
is raised and no round is opened.

There is no state to share, so a fork cannot share it: every word comes from the kernel at the moment it is used.
"""

from casino_brag.rng.deal import DEALS, Draw, draw_deal, rank, unrank
from casino_brag.rng.module import MODULE_DIGEST
from casino_brag.rng.source import RngUnavailable, check_source

__all__ = ["DEALS", "MODULE_DIGEST", "Draw", "RngUnavailable", "check_source", "draw_deal", "rank", "unrank"]
