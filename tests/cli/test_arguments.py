"""What commands are given as text: times."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from casino_brag.cli.arguments import MOMENT


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-30", datetime(2026, 11, 30, tzinfo=UTC)),
        ("2026-11-30T01:30:00Z", datetime(2026, 11, 30, 1, 30, tzinfo=UTC)),
        ("2026-11-30T01:30:00+02:00", datetime(2026, 11, 29, 23, 30, tzinfo=UTC)),
        ("2026-11-30T01:30:00.000250-0100", datetime(2026, 11, 30, 2, 30, 0, 250, tzinfo=UTC)),
    ],
)
def test_a_time_is_in_utc_however_it_is_written(text: str, moment: datetime) -> None:
    found = MOMENT.convert(text, None, None)
    assert (found, found.tzinfo) == (moment, UTC)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-11-31", "2026-11-30T01:30:00", "0001-01-01T00:00:00+01:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        MOMENT.convert(text, None, None)
