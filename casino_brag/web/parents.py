"""A process that belongs to another and should not outlive it."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent: int) -> bool:
    """Leaves Ctrl-C to the parent, and has the kernel send a SIGTERM when the parent is gone.

    Whether the parent, told by its process id, is still there: of one that went before this the kernel says nothing.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent
