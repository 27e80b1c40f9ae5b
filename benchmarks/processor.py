"""Who used the processor."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def busy_seconds(root: int) -> float:
    """Processor time of a process and all below it, those that have ended included."""
    children: dict[int, list[int]] = defaultdict(list)
    seconds: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended, and its time is its parent's now
            children[int(stat[1])].append(int(entry.name))
            seconds[int(entry.name)] = sum(map(int, stat[11:15])) / _TICKS
    total, waiting = 0.0, [root]
    while waiting:
        process = waiting.pop()
        total += seconds.get(process, 0.0)
        waiting += children[process]
    return total


def machine_seconds() -> tuple[float, float]:
    """Processor time of the whole machine since it started: busy, and all there was."""
    user, nice, system, idle, iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    busy = user + nice + system + irq + softirq + steal
    return busy / _TICKS, (busy + idle + iowait) / _TICKS
