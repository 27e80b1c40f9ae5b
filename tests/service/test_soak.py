"""A minute at which everything goes wrong at once; `python -m tests.soak` is the longer form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak import soak

SECONDS = 60
SEED = 20261130


@pytest.mark.timeout(600)
def test_no_money_is_lost_or_made_while_everything_goes_wrong(tmp_path: Path) -> None:
    report = soak(tmp_path, seconds=SECONDS, seed=SEED)
    assert report.differences == [], str(report)
    assert report.totals["rounds"] > 0
    assert any(what.startswith("killed") for what in report.findings.counts)
