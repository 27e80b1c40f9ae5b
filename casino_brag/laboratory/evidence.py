"""A folder to send to a laboratory: what the module is, what was tested, how it came out, and samples to test again.

It is written beside its place and moved there when it is complete, so that what breaks off leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from casino_brag.errors import SetUpError
from casino_brag.laboratory import battery, byte_tests, clauses, collectors, facts, pages, statistics
from casino_brag.laboratory.findings import Findings, Sample
from casino_brag.laboratory.health import examine
from casino_brag.laboratory.judging import Test, judge
from casino_brag.rng.deal import CARDS_DEALT
from casino_brag.rng.generator import Generator, RngUnavailable
from casino_brag.rng.hmac_drbg import OUTPUT_BYTES_MAX
from casino_brag.rng.module import DIRECTORY
from casino_brag.simulation.mapper import Cards

T = TypeVar("T")
Tell = Callable[[str], None]

BYTES_MAX: Final = 1_000_000_000
TELL_SECONDS: Final = 5.0


def write(directory: Path, deals: int, size: int, *, with_battery: bool, tell: Tell) -> Findings:
    """Writes the folder, from so many deals and bytes, and tells how far it has come.

    ``with_battery`` adds the whole external battery.  `SetUpError` for a directory that is not empty or cannot be
    written, and where a program of the battery fails; `RngUnavailable` where the module does.
    """
    _must_be_empty(directory)
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        try:
            findings = _write(aside, deals, size, with_battery, tell)
            aside.chmod(0o755)
            aside.replace(directory)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except (FileNotFoundError, PermissionError, FileExistsError, NotADirectoryError) as failure:
        raise SetUpError(f"{directory} cannot be written: {failure.strerror}.") from failure
    return findings


def _must_be_empty(directory: Path) -> None:
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise SetUpError(f"{directory} is there already and not an empty directory: name a new one.")
    except OSError as failure:
        raise SetUpError(f"{directory} cannot be read: {failure.strerror}.") from failure


def _write(folder: Path, deals: int, size: int, with_battery: bool, tell: Tell) -> Findings:
    tell("testing the module")
    generator = Generator()
    health = examine(generator)
    if not health.ready:
        raise RngUnavailable(health.failure)
    samples = folder / "samples"
    samples.mkdir()
    output = _sample_bytes(generator, size, samples / "raw.bin", tell)
    cards = _sample_deals(generator, deals, samples / "deals.txt", tell)
    tell("testing deals and bytes")
    judgement = judge(
        [*statistics.deal_tests(cards), *byte_tests.byte_tests(output)],
        partial(_again, generator, deals, len(output), tell),
    )
    ran = battery.battery(generator, battery.plan(size), tell) if with_battery else None
    findings = Findings(
        datetime.now(UTC).replace(microsecond=0),
        health,
        judgement,
        ran,
        (
            Sample("samples/raw.bin", f"casino-brag rng raw {size}", facts.digest(samples / "raw.bin")),
            Sample(
                "samples/deals.txt",
                f"casino-brag rng deals {deals} --index",
                facts.digest(samples / "deals.txt"),
            ),
        ),
        cards,
        output,
    )
    _write_pages(folder, findings)
    return findings


def _write_pages(folder: Path, findings: Findings) -> None:
    shutil.copytree(DIRECTORY, folder / "module", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(clauses.FILE, folder / "clauses.toml")
    package = facts.package_digests()
    (folder / "package.sha256").write_text(_sums(package), encoding="ascii")
    (folder / "results.json").write_text(json.dumps(findings.document(), indent=1) + "\n", encoding="ascii")
    (folder / "index.html").write_text(pages.html(findings), encoding="utf-8")
    (folder / "README.txt").write_text(pages.readme(findings), encoding="utf-8")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = {path.relative_to(folder).as_posix(): facts.digest(path) for path in files}
    (folder / "SHA256SUMS").write_text(_sums(sums), encoding="ascii")


def _sums(digests: dict[str, str]) -> str:
    """Digests as sha256sum writes and checks them."""
    return "".join(f"{digest}  {name}\n" for name, digest in digests.items())


def _sample_bytes(generator: Generator, size: int, file: Path, tell: Tell) -> bytes:
    """Collects into a file, and gives back as much of it as is tested here."""
    tested = bytearray()
    with file.open("wb") as sample:
        requests = -(-size // OUTPUT_BYTES_MAX)
        for block in _told(collectors.raw(generator, size), requests, f"drawing {size:,} bytes", tell):
            sample.write(block)
            tested += block[: byte_tests.BYTES_MAX - len(tested)]
    return bytes(tested)


def _sample_deals(generator: Generator, count: int, file: Path, tell: Tell) -> Cards:
    """Collects into a file, and gives back the cards: shape (6, count)."""
    cards = np.empty((count, CARDS_DEALT), dtype=np.uint8)
    with file.open("w", encoding="ascii") as sample:
        drawn = _told(collectors.deals(generator, count), count, f"dealing {count:,} rounds", tell)
        for place, draw in enumerate(drawn):
            cards[place] = draw.cards
            sample.write(collectors.line(draw, with_index=True))
    return np.ascontiguousarray(cards.T)


def _again(generator: Generator, deals: int, size: int, tell: Tell, names: Collection[str]) -> list[Test]:
    """All tests once more on fresh output, none of which is kept; ``names`` says which were asked for."""
    tell(f"once more, as laid down beforehand: {', '.join(sorted(names))}")
    cards = _sample_deals(generator, deals, Path(os.devnull), tell)
    output = _sample_bytes(generator, size, Path(os.devnull), tell)
    tests = [*statistics.deal_tests(cards), *byte_tests.byte_tests(output)]
    return [test for test in tests if test.name in names]


def _told(items: Iterable[T], count: int, doing: str, tell: Tell) -> Iterator[T]:
    """The items; tells how far they have come every few seconds."""
    tell(doing)
    told_at = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - told_at > TELL_SECONDS:
            told_at = time.monotonic()
            tell(f"{doing}: {100 * number // count} %")
