"""The documents say what the code does: their tables, examples, names and links are compared with it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import click
import pytest

from casino_brag.catalogue.signing import signature
from casino_brag.config import Config
from casino_brag.errors import MEANINGS, Code
from casino_brag.staff.people import Role
from tests.commands import COMMANDS
from tests.inprocess import openapi_document

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def text(name: str) -> str:
    return (ROOT / name).read_text()


def section(document: str, heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    level = heading.partition(" ")[0]
    after = document.split(f"\n{heading}\n", 1)[1]
    return re.split(rf"^#{{1,{len(level)}}} ", after, maxsplit=1, flags=re.MULTILINE)[0]


def rows(part: str) -> list[list[str]]:
    """The body of the first table in a text, cell by cell."""
    lines = part.split("\n|", 1)[1].split("\n\n", 1)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def blocks(part: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    return [block for of, block in fenced if of == language]


def test_the_problems_are_those_of_the_code_in_its_order() -> None:
    expected = []
    for code in Code:
        meaning = MEANINGS[code]
        again = "may succeed" if meaning.retryable else "no"
        if meaning.retry_after_seconds is not None:
            again += f", after {meaning.retry_after_seconds} s"
        expected.append([f"`{code}`", str(meaning.status), meaning.title, again])
    assert rows(section(text("docs/http.md"), "## Problems")) == expected


def test_the_calls_are_those_of_the_openapi_document() -> None:
    proof = {"session": "player", "signature": "operator"}
    expected = set()
    for path, item in openapi_document()["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                callers = [
                    roles[0] if roles else proof[scheme]
                    for one in operation.get("security", [])
                    for scheme, roles in one.items()
                ]
                expected.add((f"`{method.upper()} {path}`", " or ".join(callers) or "anyone"))
    told = [(call, caller) for call, caller, _ in rows(section(text("docs/http.md"), "## Calls"))]
    assert len(told) == len(set(told))
    assert set(told) == expected


def test_the_roles_of_staff_are_those_of_the_code() -> None:
    assert [role for role, _ in rows(section(text("docs/http.md"), "## Staff"))] == [
        f"`{role}`" for role in Role
    ]


def test_the_signing_example_gives_the_printed_signature() -> None:
    part = section(text("docs/http.md"), "## Signed requests")
    lines, printed = (block.strip() for block in blocks(part, ""))
    method, path, timestamp, nonce, _ = lines.split("\n")
    quoted = re.search(r"secret `([^`]+)` and the body\s+`([^`]+)`", part)
    assert quoted
    secret, body = quoted[1], quoted[2].encode()
    (example,) = blocks(part, "python")
    namespace: dict[str, object] = {}
    exec(example, namespace)
    theirs = namespace["signature"]
    assert callable(theirs)
    signed = (secret, method, path, timestamp, nonce, body)
    assert theirs(*signed) == signature(*signed) == printed


def variables_read() -> set[str]:
    named = re.compile(r'"(DATABASE_URL|CASINO_BRAG_[A-Z_]+)"')
    return {name for file in (ROOT / "casino_brag").rglob("*.py") for name in named.findall(file.read_text())}


def test_the_environment_is_all_that_the_code_reads() -> None:
    told = rows(section(text("docs/operating.md"), "## Environment"))
    assert {f"`{name}`" for name in variables_read()} == {name for name, _, _ in told}


def test_the_defaults_of_the_environment_are_those_of_the_configuration() -> None:
    told = {name: default for name, default, _ in rows(section(text("docs/operating.md"), "## Environment"))}
    defaults = {field.name: field.default for field in fields(Config)}
    assert told["`CASINO_BRAG_POOL_SIZE`"] == f"`{defaults['pool_size']}`"
    assert told["`CASINO_BRAG_RATE_PER_SECOND`"] == f"`{defaults['rate_per_second']}`"
    assert f"takes {defaults['rate_per_second']} requests a second" in text("docs/http.md")


@every_document
def test_every_link_leads_somewhere(document: Path) -> None:
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        to = (document.parent / file).resolve() if file else document
        if not to.exists() or (anchor and anchor not in anchors(to)):
            lost.append(target)
    assert lost == []


def anchors(document: Path) -> set[str]:
    """What a heading is called in a link."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_document
def test_what_a_document_tells_a_shell_can_be_pasted(document: Path) -> None:
    """A continuation prompt would be a redirection, which empties the file that the line names."""
    told = [
        block
        for language in ("sh", "bash", "console", "")
        for block in blocks(document.read_text(), language)
    ]
    assert [line for block in told for line in block.splitlines() if re.match(r"\s*> ", line)] == []
    to_paste = blocks(document.read_text(), "sh")
    assert [line for block in to_paste for line in block.splitlines() if re.match(r"\s*[$#%] ", line)] == []


def test_every_document_is_on_the_map() -> None:
    readme = text("README.md")
    assert [path.name for path in (ROOT / "docs").glob("*.md") if f"](docs/{path.name})" not in readme] == []


def test_every_room_is_on_the_map() -> None:
    rooms = {path.parent.name for path in (ROOT / "casino_brag").glob("*/__init__.py")}
    _, _, table = text("README.md").partition("\n| room ")
    told = {room for room, _, _ in rows("\n| room " + table)}
    assert told == {f"`{room}/`" for room in rooms}


def test_decisions_are_numbered_without_a_gap() -> None:
    files = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [int(file.name[:4]) for file in files] == list(range(1, len(files) + 1))
    assert [file.name for file in files if not file.read_text().startswith(f"# {int(file.name[:4])}. ")] == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    needed = {re.split(r"[^\w-]", name)[0] for name in project["dependencies"]}
    told = rows(section(text("docs/adr/0003-dependencies.md"), "## Decision"))
    assert {name.lower() for names, *_ in told for name in names.split(", ")} == needed


def test_the_schema_is_the_one_that_the_architecture_names() -> None:
    told = {
        file.strip("`"): {*re.findall("`([a-z_]+)`", tables), *re.findall("`([a-z_]+)`", functions)}
        for file, tables, functions in rows(section(text("docs/architecture.md"), "## Where the SQL is"))
    }
    made = re.compile(r"^CREATE (?:TABLE|VIEW|FUNCTION) (\w+)", re.MULTILINE)
    assert told == {
        path.name: set(made.findall(path.read_text())) for path in (ROOT / "migrations").glob("*.sql")
    }


def test_every_command_that_is_named_exists() -> None:
    """In documents, and in the comments of the paytables, which operators read."""
    unknown = set()
    for file in [*DOCUMENTS, *(ROOT / "paytables").glob("*.toml")]:
        for words in re.findall(
            r"(?:`|^ *|\$ )casino-brag((?: [a-z][a-z-]*)+)", file.read_text(), re.MULTILINE
        ):
            if not is_command(words.split()):
                unknown.add((str(file.relative_to(ROOT)), words.strip()))
    assert unknown == set()


def is_command(words: list[str]) -> bool:
    """Whether words begin with a command's name, and go on with a subcommand's where it has any."""
    known = [tuple(words[:count]) in COMMANDS for count in range(len(words) + 1)]
    if all(known):
        return True
    return not isinstance(COMMANDS[tuple(words[: known.index(False) - 1])], click.Group)


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z]+): ##", text("Makefile"), re.MULTILINE))
    named = {word for file in DOCUMENTS for word in re.findall(r"(?:`|    )make ([a-z]+)", file.read_text())}
    assert named <= targets
    assert targets - {"help"} <= named


@every_document
def test_no_document_claims_a_certificate(document: Path) -> None:
    assert not re.search(r"\bcertified\b", document.read_text(), re.IGNORECASE)
