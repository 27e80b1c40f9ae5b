"""The folder's page for a person, and its map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from casino_brag.laboratory import description, statistics, usage
from casino_brag.laboratory.byte_tests import byte_counts
from casino_brag.laboratory.clauses import clauses
from casino_brag.laboratory.facts import build_facts, module_digests
from casino_brag.laboratory.findings import Findings
from casino_brag.laboratory.judging import FAILS_BELOW, UNUSUAL_BELOW, Judgement
from casino_brag.laboratory.plots import Plot
from casino_brag.odds.pages.parts import Commands, Table, Terms, Text, Warn, codes, numbers, words
from casino_brag.rng.deal import CARDS_DEALT, DEALS, PACK_SIZE
from casino_brag.rng.module import MODULE_DIGEST

TITLE: Final = "Random number module of casino-brag: evidence for examination"

FILES: Final = {
    "index.html": "begin here: everything in this folder, for a person",
    "README.txt": "this map",
    "results.json": "every figure of index.html, for a program",
    "clauses.toml": "the clause table, for a program",
    "module/": "the source of the module, as it dealt the samples; its MANIFEST.sha256 checks it",
    "package.sha256": "digests of every file of the package that the module ships in",
    "samples/raw.bin": "output of the generator, before any scaling",
    "samples/deals.txt": "deals in the order drawn: index, the player's three cards, the dealer's three",
    "SHA256SUMS": "digests of all other files: sha256sum --check SHA256SUMS",
}

DEAL_RANGES_SHOWN: Final = 100

_TEMPLATES: Final = Environment(
    loader=PackageLoader("casino_brag.laboratory"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot with what is to be said of it."""

    kind: ClassVar[str] = "figure"
    plot: Plot
    caption: str


Block = Text | Warn | Terms | Commands | Table | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A headed part of the page; ``anchor`` is the name to link to."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


def html(findings: Findings) -> str:
    """The whole as one HTML file, which loads nothing and runs nothing."""
    sections = (
        Section("short", "In short", tuple(_short(findings))),
        Section("limits", "What this is not", (Terms(description.LIMITS),)),
        Section("module", "The module", (Terms(description.module()),)),
        Section("clauses", "Clauses, and what answers them", tuple(_clauses())),
        Section("files", "Files and build", tuple(_files())),
        Section("health", "Self-test and health", tuple(_health(findings))),
        Section("statistics", "Statistics", tuple(_statistics(findings))),
        Section("batteries", "External batteries", tuple(_battery(findings))),
        Section("samples", "Samples", tuple(_samples(findings))),
        Section("usage", "Where random numbers go", tuple(_usage())),
        Section("again", "To do it again", (Text(description.AGAIN), Commands(description.COMMANDS))),
    )
    return _TEMPLATES.get_template("evidence.html.j2").render(title=TITLE, sections=sections)


def readme(findings: Findings) -> str:
    """The map of the folder."""
    width = max(map(len, FILES))
    lines = (f"{name.ljust(width)}  {what}" for name, what in FILES.items())
    return "\n".join((TITLE, f"made {findings.made_at.isoformat()}", "", *lines, ""))


def _short(findings: Findings) -> Iterator[Block]:
    yield Text(description.CLAIM)
    health = findings.health
    battery = findings.battery.judgement.conclusion.value if findings.battery else "not run"
    yield Terms(
        (
            ("Module digest", (MODULE_DIGEST,)),
            ("Made at", (findings.made_at.isoformat(),)),
            ("State", (health.state.value,)),
            ("Known answers", (f"{health.tested['known_answers']} of NIST's cases, all passed",)),
            (
                "Own statistics",
                (
                    f"{findings.statistics.conclusion.value}: {len(findings.statistics.tests)} tests as one family",
                ),
            ),
            ("External batteries", (battery,)),
        )
    )


def _clauses() -> Iterator[Block]:
    yield Text(
        "Requirements are in our words and shortened; the standards have theirs. Code and tests are named by file and"
        " name in the source that this was made from."
    )
    for standard, rows in groupby(clauses(), key=lambda clause: clause.standard):
        yield Table(
            standard,
            words("section", "asks", "how it is met") + codes("code", "tests"),
            tuple(
                (row.section, row.asks, row.met, "  ".join(row.code), "  ".join(row.tests)) for row in rows
            ),
        )


def _files() -> Iterator[Block]:
    yield Terms(tuple((label, (text,)) for label, text in build_facts().items()))
    yield Table("Files of the module", words("file") + codes("SHA-256"), tuple(module_digests().items()))
    yield Text(
        "The digest that is stored with every round is one over names, lengths and contents of these files but the"
        " manifest. Digests of all files of the package are in package.sha256."
    )


def _health(findings: Findings) -> Iterator[Block]:
    tested, kernel = findings.health.tested, findings.health.kernel
    yield Text(
        f"Before its first output the module compared {tested['files']} files with its manifest, computed"
        f" {tested['known_answers']} known answers and tested {tested['entropy_bytes']:,} bytes of the kernel's"
        " generator, which it then threw away. It went on to draw the samples of this folder."
    )
    yield Terms(tuple((f"Kernel: {name.replace('_', ' ')}", (str(value),)) for name, value in kernel.items()))
    yield Table(
        "Events that the module reported",
        words("event") + codes("detail"),
        tuple(
            (
                event.kind.value.replace("_", " "),
                "  ".join(f"{name}={value}" for name, value in event.detail.items()),
            )
            for event in findings.health.events
        ),
    )


def _statistics(findings: Findings) -> Iterator[Block]:
    rounds = findings.cards.shape[1]
    yield Text(
        f"{len(findings.statistics.tests)} tests of our own, on {rounds:,} deals and the first"
        f" {len(findings.output):,} bytes of the samples."
        " The rule was laid down beforehand: p-values are adjusted for the number of tests (Holm); an adjusted p below"
        f" {UNUSUAL_BELOW} is unusual, which a sound generator is once in a hundred times; one below {FAILS_BELOW:.0e}"
        " is run again on fresh output, and fails if it comes again."
    )
    yield from (Figure(plot, _caption(plot)) for plot in _plots(findings))
    yield _tests("Tests of deals and of bytes", findings.statistics)


def _caption(plot: Plot) -> str:
    points = len(plot.counted)
    return (
        f"{sum(plot.counted):,} in all. The line is what is expected, the shaded band holds a point 999 times in 1,000:"
        f" {plot.outside()} of {points} are outside, where {points / 1000:.2g} are expected."
    )


def _plots(findings: Findings) -> Iterator[Plot]:
    rounds = findings.cards.shape[1]
    by_position = statistics.cards_by_position(findings.cards).ravel().tolist()
    yield Plot(
        "Cards by position",
        "position in the deal; in each the 52 cards from 2c to As",
        by_position,
        [rounds / PACK_SIZE] * len(by_position),
        [(PACK_SIZE * (place + 0.5), str(place + 1)) for place in range(CARDS_DEALT)],
    )
    held = [count for of_hand in statistics.categories(findings.cards) for count in of_hand.tolist()]
    names = [category.replace("_", " ") for category in statistics.CATEGORIES] * 2
    yield Plot(
        "Categories of hands against their exact frequencies",
        "category: the player's hands left, the dealer's right",
        held,
        [rounds * chance for chance in statistics.category_chances().tolist()] * 2,
        list(enumerate(names)),
    )
    ranges = statistics.index_ranges(statistics.indexes(findings.cards)).reshape(DEAL_RANGES_SHOWN, -1)
    yield Plot(
        "Deal indexes",
        f"deal index in thousand millions, in {DEAL_RANGES_SHOWN} equal ranges of the {DEALS:,}",
        ranges.sum(axis=1).tolist(),
        [rounds / DEAL_RANGES_SHOWN] * DEAL_RANGES_SHOWN,
        [(2e9 * step / DEALS * DEAL_RANGES_SHOWN - 0.5, str(2 * step)) for step in range(8)],
    )
    counted = byte_counts(findings.output).tolist()
    yield Plot(
        "Bytes of raw output",
        "byte value",
        counted,
        [len(findings.output) / 256] * 256,
        [(float(byte), str(byte)) for byte in (*range(0, 256, 32), 255)],
    )


def _tests(title: str, judgement: Judgement) -> Table:
    return Table(
        title,
        words("test", "law")
        + numbers("statistic", "degrees of freedom", "p", "p adjusted", "p when run again"),
        tuple(
            (
                judged.test.name,
                judged.test.law.replace("-", "\u2011"),  # not to be divided
                "–" if judged.test.statistic is None else f"{judged.test.statistic:,.2f}",
                "–" if judged.test.degrees is None else str(judged.test.degrees),
                f"{judged.test.p:.4g}",
                f"{judged.adjusted:.4g}",
                "–" if judged.again is None else f"{judged.again.p:.4g}",
            )
            for judged in judgement.tests
        ),
    )


def _battery(findings: Findings) -> Iterator[Block]:
    if findings.battery is None:
        yield Text(
            "They were not run for this folder. With --battery they are; or run casino-brag rng battery by itself,"
            " which takes some minutes."
        )
        return
    yield Text(
        "ent, rngtest and dieharder read raw output as it was drawn, fresh for each of them, and are judged as one"
        f" family by the rule above: {findings.battery.judgement.conclusion.value}."
    )
    if findings.battery.missing:
        yield Text(f"Not installed, and so not run: {', '.join(findings.battery.missing)}.")
    yield Table(
        "Commands, as they were run on the raw collector's output",
        codes("command") + words("package and version") + numbers("bytes, at most", "seconds"),
        tuple(
            (ran.command, ran.package, f"{ran.size:,}", f"{ran.seconds:.1f}") for ran in findings.battery.runs
        ),
    )
    yield _tests("Tests of the batteries", findings.battery.judgement)


def _samples(findings: Findings) -> Iterator[Block]:
    yield Text(
        "Both were drawn on the call path of live rounds. A command collects another sample like it, of any size;"
        " never the same one again, for there is no seed to set."
    )
    yield Table(
        "Samples in this folder",
        codes("file", "command", "SHA-256"),
        tuple((sample.name, sample.command, sample.sha256) for sample in findings.samples),
    )


def _usage() -> Iterator[Block]:
    yield Text(
        "Read from the source by a program when this was made, so that nothing is left out of it by hand."
    )
    columns = codes("function", "uses") + words("how the source describes the function")
    for title, uses in (
        ("Functions that use the module", usage.module_uses()),
        (
            "Functions that ask the operating system for random numbers, or for new identifiers",
            usage.other_uses(),
        ),
    ):
        yield Table(title, columns, tuple((use.where, "  ".join(use.names), use.purpose) for use in uses))
    yield Text(
        "Of the second table, Entropy.draw is the module's own source. One of the others enters a deal: a round's"
        " identifier is part of the personalization, which earns no entropy credit."
    )
    yield Table(
        "What the generator is asked for", codes("function") + words("purpose"), tuple(usage.purposes())
    )
