"""docs/rng.md says what is the case: its tables, numbers and examples are made again and compared."""

from __future__ import annotations

import re
import subprocess
from hashlib import sha256
from itertools import groupby
from uuid import UUID

import pytest

from casino_brag.audit import EntryType
from casino_brag.game.cards import PACK
from casino_brag.laboratory.clauses import clauses
from casino_brag.rng import DEALS, MODULE_DIGEST, State, bounded, commitment_value, seeds, unrank
from casino_brag.rng.deal import CARDS_DEALT, PACK_SIZE
from casino_brag.rng.generator import RESEED_SECONDS_MAX
from casino_brag.rng.hmac_drbg import INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, REQUESTS_MAX, HmacDrbg
from casino_brag.rng.known_answers import CASES
from casino_brag.rng.module import DIRECTORY, MANIFEST, module_files
from tests.named import ROOT, exists

DOCUMENT = (ROOT / "docs" / "rng.md").read_text(encoding="utf-8")
PLACES = (
    "benchmarks/",
    "casino_brag/",
    "docs/",
    "migrations/",
    "paytables/",
    "requirements/",
    "tests/",
    "verification/",
)


def section(heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    level = heading.partition(" ")[0]
    after = DOCUMENT.split(f"\n{heading}\n", 1)[1]
    return re.split(rf"^#{{1,{len(level)}}} ", after, maxsplit=1, flags=re.MULTILINE)[0]


def rows(part: str, table: int = 0) -> list[list[str]]:
    """The body of a table in a text, cell by cell."""
    found = re.findall(r"(?:^\|.*\n)+", part, re.MULTILINE)[table]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found.splitlines()[2:]]


def hexadecimal(part: str, block: int) -> bytes:
    """The bytes of a fenced block."""
    return bytes.fromhex(re.findall(r"^```\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)[block])


def clause_tables() -> str:
    """The clauses as the document shows them, a table for each standard."""
    lines = []
    for standard, of_standard in groupby(clauses(), key=lambda clause: clause.standard):
        lines += [
            f"### {standard}",
            "",
            "| section | asks | how it is met | code | tests |",
            "|---|---|---|---|---|",
        ]
        for clause in of_standard:
            code, tests = (", ".join(f"`{name}`" for name in names) for names in (clause.code, clause.tests))
            lines.append(f"| {clause.section} | {clause.asks} | {clause.met} | {code} | {tests} |")
        lines.append("")
    return "\n".join(lines)


def test_the_clauses_are_those_of_the_evidence() -> None:
    _, _, shown = section("## Clauses").partition("### ")
    assert f"### {shown}".split("\n") == f"{clause_tables()}\n".split("\n")


def test_every_file_and_test_that_is_named_exists() -> None:
    named = [name.split()[0] for name in re.findall(r"`([^`\n]+)`", DOCUMENT) if name.startswith(PLACES)]
    assert len(named) > 100
    assert sorted({name for name in named if not exists(name)}) == []


@pytest.mark.parametrize(
    "name", ["casino_brag/rng/none.py", "tests/rng/test_deal.py::test_none", "docs/none/"]
)
def test_a_name_that_is_nowhere_is_noticed(name: str) -> None:
    assert not exists(name)


def test_every_threat_is_tried_by_a_test() -> None:
    threats = rows(section("## Threats"))
    assert len(threats) > 20
    assert [attack for attack, _, tried in threats if "::test_" not in tried] == []


def test_the_module_is_the_files_that_are_listed() -> None:
    listed = re.findall(
        "`([^`]+)`", "".join(files for files, _ in rows(section("## The module and its boundary")))
    )
    assert {ROOT / name for name in listed} == {*module_files(), DIRECTORY / MANIFEST}


def test_the_digest_is_computed_as_it_is_said() -> None:
    (script,) = re.findall(r"^```sh\n(.*?)^```$", section("## The module and its boundary"), re.M | re.S)
    done = subprocess.run(
        ["sh", "-euc", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split()[0] == MODULE_DIGEST


def test_the_limits_are_those_of_the_code() -> None:
    told = [here for _, here, _ in rows(section("## The generator"), 1)]
    assert told == [
        f"{OUTPUT_BYTES_MAX:,}",
        f"1; the core refuses after {REQUESTS_MAX:,}",
        f"that of the request; refused after {RESEED_SECONDS_MAX} s",
        f"{INPUT_BYTES_MAX:,} bytes each",
    ]
    assert f"| {CASES} of NIST's cases, and" in DOCUMENT


def test_the_states_and_what_is_logged_are_those_of_the_code() -> None:
    assert [name for name, *_ in rows(section("## States"))] == [f"`{state}`" for state in State]
    logged = section("## What is logged")
    told = [name for table in (0, 1) for name, *_ in rows(logged, table)]
    of_it = (
        "commitment.",
        "round.opened",
        "round.settled",
        "round.voided",
        "rng.",
        "integrity.",
        "operator.client",
    )
    assert sorted(told) == sorted(f"`{kind}`" for kind in EntryType if kind.startswith(of_it))


def test_the_discard_is_as_it_is_computed() -> None:
    part = section("## From words to cards").replace("\n", " ")
    over, limit = bounded.WORDS % DEALS, bounded.WORDS - bounded.WORDS % DEALS
    for said in (f"= {DEALS:,}", f"2^64 mod D = {over:,}", f"= {limit:,} = {limit // DEALS:,} · D"):
        assert said in part
    assert f"{over / bounded.WORDS:.3g}" == "4.56e-10"
    assert round(bounded.WORDS / over / 1e9, 1) == 2.2


def test_the_deal_by_hand_is_the_module_s() -> None:
    part = section("## From words to cards")
    word = int(re.findall("for the word `([0-9a-f]{16})`", part)[0], 16)
    index = word % DEALS
    assert f"word  = {word:,}, below the limit" in part
    assert f"index = word mod D = {index:,}" in part
    picks: list[int] = []
    worked: list[list[str]] = []
    for radix in range(PACK_SIZE - CARDS_DEALT + 1, PACK_SIZE + 1):
        left, pick = divmod(index, radix)
        worked.append([f"{index:,}", str(radix), f"{left:,}", str(pick)])
        picks.insert(0, pick)
        index = left
    assert rows(part, 0) == worked
    dealt = unrank(word % DEALS)
    assert rows(part, 1) == [
        [str(place), str(pick), str(place + pick), str(card), str(PACK[card])]
        for place, (pick, card) in enumerate(zip(picks, dealt, strict=True))
    ]
    assert f"The player has {' '.join(str(PACK[card]) for card in dealt[:3])}, " in part
    assert f"the dealer {' '.join(str(PACK[card]) for card in dealt[3:])}." in part


def test_the_example_of_the_protocol_is_the_module_s() -> None:
    part = section("## The verifiable deal")
    told = re.findall("`([0-9a-f-]{16,64})`", part)
    round_id, rules, value, word = UUID(told[0]), told[1], told[2], told[3]
    seed, client_seed = bytes(range(48)), re.findall(r"client seed\s+`([^`]+)`", part)[0]
    hashed, personalization = hexadecimal(part, 0), hexadecimal(part, 1)
    assert commitment_value(round_id, rules, 1, None, seed).hex() == value
    assert sha256(hashed).hexdigest() == value
    assert f"{len(hashed)} bytes are hashed" in part
    child = HmacDrbg(seed[:32], seed[32:], personalization)
    assert child.generate(8).hex() == word
    assert f"for the word `{word}`" in section("## From words to cards")
    assert seeds.deal(seed, round_id, rules, client_seed).index == int(word, 16) % DEALS
    assert f"the index is {seeds.deal(seed, round_id, rules, None).index:,}." in part.replace("\n", " ")
