"""The folder of evidence: complete, checkable by other programs, legible, and whole or not there."""

from __future__ import annotations

import errno
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from casino_brag.errors import SetUpError
from casino_brag.game.cards import Card
from casino_brag.laboratory import battery, byte_tests, evidence, pages
from casino_brag.laboratory.byte_tests import BYTES_MIN
from casino_brag.laboratory.clauses import clauses
from casino_brag.laboratory.judging import Conclusion, Test, judge
from casino_brag.laboratory.statistics import DEALS_MIN
from casino_brag.rng import MODULE_DIGEST, Generator, RngUnavailable
from casino_brag.rng.deal import rank
from casino_brag.rng.module import module_files

SECONDS = 60


def silent(_: str) -> None:
    """Tells nobody."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small folder of evidence."""
    directory = tmp_path_factory.mktemp("laboratory") / "evidence"
    evidence.write(directory, DEALS_MIN, BYTES_MIN, with_battery=False, tell=silent)
    return directory


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "index.html").read_text(encoding="utf-8")


class Checked(HTMLParser):
    """The text of a page; AssertionError where tags do not nest or anything is loaded or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed"}
        if tag != "meta":
            self.open.append(tag)
        for name, value in attrs:
            assert name not in ("src", "srcset", "data", "action")
            assert not name.startswith("on")
            if name == "id":
                self.anchors.append(str(value))
            if name == "href":
                self.links.append(str(value))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def sha256sum(directory: Path, sums: str) -> str:
    return subprocess.run(
        ["/usr/bin/sha256sum", "--check", "--strict", sums],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    ).stdout


def test_every_file_is_under_a_digest_that_sha256sum_agrees_with(folder: Path) -> None:
    told = sha256sum(folder, "SHA256SUMS")
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {line.removesuffix(": OK") for line in told.splitlines()} == files - {"SHA256SUMS"}


def test_the_module_s_source_is_there_and_agrees_with_its_manifest(folder: Path) -> None:
    told = sha256sum(folder / "module", "MANIFEST.sha256")
    assert len(told.splitlines()) == len(module_files())
    for file in module_files():
        assert (folder / "module" / file.name).read_bytes() == file.read_bytes()


def test_the_package_s_digests_are_those_of_its_files(folder: Path) -> None:
    package = Path(evidence.__file__).parents[2]
    told = sha256sum(package, str(folder / "package.sha256"))
    assert "casino_brag/rng/generator.py: OK" in told.splitlines()
    assert "casino_brag/laboratory/evidence.py: OK" in told.splitlines()


def test_the_map_names_every_file_and_no_other(folder: Path) -> None:
    told = (folder / "README.txt").read_text()
    assert set(re.findall(r"^([\w./]+[\w/]) {2,}", told, re.MULTILINE)) == set(pages.FILES)
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert all((folder / name).exists() for name in pages.FILES)
    assert {name for name in found if not name.startswith("module/")} == {
        name for name in pages.FILES if name != "module/"
    }


def test_the_page_is_self_contained_and_its_links_lead_somewhere(page: str) -> None:
    checked = Checked(page)
    assert len(checked.anchors) == len(set(checked.anchors))
    assert checked.links
    assert {link.removeprefix("#") for link in checked.links} <= set(checked.anchors)
    assert "url(" not in page
    assert page.count("<svg ") == 4


def test_the_page_tells_what_a_laboratory_asks(folder: Path, page: str) -> None:
    text = Checked(page).text
    assert MODULE_DIGEST in text
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        if name.startswith(("samples/", "module/")):
            assert digest in text, name
    for clause in clauses():
        assert clause.asks in text
        assert all(name in text for name in (*clause.code, *clause.tests))
    for test in json.loads((folder / "results.json").read_text())["statistics"]["tests"]:
        assert test["name"] in text
    assert "casino_brag/rounds/commitments.py::make" in text
    assert "OpenSSL" in text
    assert "No laboratory has examined it." in text.replace("\n", " ")


def test_nothing_claims_a_certificate(folder: Path) -> None:
    for name in ("index.html", "README.txt", "results.json", "clauses.toml"):
        assert not re.search(r"\bcertified\b", (folder / name).read_text(), re.IGNORECASE), name


def test_samples_have_the_size_that_was_asked_for(folder: Path) -> None:
    assert (folder / "samples" / "raw.bin").stat().st_size == BYTES_MIN
    lines = (folder / "samples" / "deals.txt").read_text().splitlines()
    assert len(lines) == DEALS_MIN
    for line in lines[:100]:
        index, *cards = line.split()
        assert rank(tuple(Card.parse(card).index for card in cards)) == int(index)


def test_results_are_the_page_s_figures(folder: Path) -> None:
    results = json.loads((folder / "results.json").read_text())
    assert set(results) == {"made_at", "module_digest", "build", "health", "statistics", "battery", "samples"}
    assert results["health"]["ready"] is True
    assert results["battery"] is None
    assert len(results["statistics"]["tests"]) == 42
    assert {"Python", "Kernel"} <= set(results["build"])


def test_a_directory_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("something")
    for directory in (tmp_path, tmp_path / "there"):
        with pytest.raises(SetUpError, match="name a new one"):
            evidence.write(directory, DEALS_MIN, BYTES_MIN, with_battery=False, tell=silent)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetUpError, match="cannot be written: No such file or directory"):
        evidence.write(tmp_path / "a" / "b", DEALS_MIN, BYTES_MIN, with_battery=False, tell=silent)


class Broken(Exception):
    """What breaks off."""


@pytest.mark.parametrize("doing", ["drawing", "dealing", "testing deals"])
def test_what_breaks_off_leaves_nothing(tmp_path: Path, doing: str) -> None:
    def tell(line: str) -> None:
        if line.startswith(doing):
            raise Broken

    empty = tmp_path / "evidence"
    empty.mkdir()
    with pytest.raises(Broken):
        evidence.write(empty, DEALS_MIN, BYTES_MIN, with_battery=False, tell=tell)
    assert list(tmp_path.rglob("*")) == [empty]


def test_a_full_disk_leaves_nothing_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pages, "html", full)
    with pytest.raises(OSError, match="No space left"):
        evidence.write(tmp_path / "evidence", DEALS_MIN, BYTES_MIN, with_battery=False, tell=silent)
    assert list(tmp_path.iterdir()) == []


def test_a_module_that_fails_gives_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: Generator) -> None:
        self.fail("a fault was found")

    monkeypatch.setattr(Generator, "start", start)
    with pytest.raises(RngUnavailable, match="a fault was found"):
        evidence.write(tmp_path / "evidence", DEALS_MIN, BYTES_MIN, with_battery=False, tell=silent)
    assert list(tmp_path.iterdir()) == []


def test_what_is_far_out_is_run_again_on_fresh_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested: list[bytes] = []

    def low(output: bytes) -> list[Test]:
        tested.append(output)
        return [Test("bytes", "normal", 9.0, None, 1e-18)]

    monkeypatch.setattr(byte_tests, "byte_tests", low)
    findings = evidence.write(tmp_path / "new", DEALS_MIN, BYTES_MIN, with_battery=False, tell=silent)
    assert findings.statistics.conclusion is Conclusion.FAILS
    assert len(tested) == 2
    assert tested[0] != tested[1]
    assert "1e-18" in (tmp_path / "new" / "index.html").read_text()


def test_a_battery_is_told_with_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judgement = judge([Test("ent: mean of bytes", "normal", 0.5, None, 0.6)], lambda names: [])
    ran = battery.Ran("ent -t", "ent 1.2", 10_000_000, 3.0)
    monkeypatch.setattr(
        battery,
        "battery",
        lambda *_: battery.Battery((ran,), ("dieharder (Debian package dieharder)",), judgement),
    )
    findings = evidence.write(tmp_path / "new", DEALS_MIN, BYTES_MIN, with_battery=True, tell=silent)
    assert list(findings.families) == ["statistics", "external batteries"]
    text = Checked((tmp_path / "new" / "index.html").read_text()).text
    assert "ent -t" in text
    assert "Not installed, and so not run: dieharder (Debian package dieharder)." in text
    assert "ent: mean of bytes" in text
    assert "10,000,000" in text
