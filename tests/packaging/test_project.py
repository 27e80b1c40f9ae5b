"""The checkout itself: nothing in it ties it to one machine, and its locks agree with one another."""

from __future__ import annotations

import fnmatch
import os
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ("build", "dev", "run", "serve")

# Spelt in parts, so that this file passes its own test.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("registry", "npmjs", "org"),
    )
]
PLACES_OF_ONE_MACHINE = re.compile(r"(?<![\w.}])/(?:(?:home|Users)/[\w.-]+|root|work/\w+)/")
SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\b(?:ghp|gho|ghs|glpat|npm)[_-][A-Za-z0-9]{20,}"
    r"|\bxox[abpr]-[0-9A-Za-z-]{10,}"
    r"|\b[sr]k_live_[0-9A-Za-z]{16,}"
)

Pins = dict[tuple[str, str], frozenset[str]]


def project_files() -> list[Path]:
    """Every file that .gitignore does not name; asks no git, for a source archive has none."""
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line]
    ignored.append(".git")

    def kept(name: str) -> bool:
        return not any(fnmatch.fnmatchcase(name, pattern) for pattern in ignored)

    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = filter(kept, folders)
        found += [Path(folder, name) for name in filter(kept, names)]
    return found


def matches(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}: {found.group()}"
        for path in project_files()
        for found in pattern.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]


def pins(lock: str) -> Pins:
    """``{(name, version): hashes}`` of a lock; a line that pins no exact version is an error."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    pinned: Pins = {}
    for line in text.replace("\\\n", " ").splitlines():
        requirement, *hashes = line.split("--hash=")
        (specifier,) = Requirement(requirement).specifier
        assert specifier.operator == "==", line
        name = canonicalize_name(Requirement(requirement).name)
        pinned[name, specifier.version] = frozenset(digest.strip() for digest in hashes)
    return pinned


def test_the_scan_sees_the_files_that_matter() -> None:
    seen = {str(path.relative_to(ROOT)) for path in project_files()}
    assert {
        "pyproject.toml",
        "requirements/dev.lock",
        "Dockerfile",
        ".ci/run",
        "casino_brag/__init__.py",
    } <= seen
    assert not any(path.startswith((".venv/", ".git/")) for path in seen)


def test_no_file_names_the_host_of_a_package_registry() -> None:
    assert not matches(re.compile("|".join(map(re.escape, REGISTRY_HOSTS))))


def test_no_file_names_a_place_of_one_machine() -> None:
    assert not matches(PLACES_OF_ONE_MACHINE)


def test_no_file_holds_what_looks_like_a_secret() -> None:
    assert not matches(SECRETS)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes(lock: str) -> None:
    pinned = pins(lock)
    assert pinned
    for pin, hashes in pinned.items():
        assert hashes, f"{pin} has no hash"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in hashes), pin


@pytest.mark.parametrize(("smaller", "larger"), [("run", "serve"), ("build", "serve"), ("serve", "dev")])
def test_a_smaller_lock_is_part_of_the_larger_at_equal_versions(smaller: str, larger: str) -> None:
    assert pins(smaller).items() <= pins(larger).items()


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("run", ()), ("serve", ("embedded",)), ("dev", ("embedded", "sim", "cluster", "dev"))],
)
def test_a_lock_meets_every_requirement_of_the_project(lock: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [*project["dependencies"]]
    for extra in extras:
        required += project["optional-dependencies"][extra]
    pinned = pins(lock)
    for requirement in map(Requirement, required):
        versions = [version for name, version in pinned if name == canonicalize_name(requirement.name)]
        assert versions, f"{requirement} is not in {lock}.lock"
        assert all(version in requirement.specifier for version in versions), requirement


def test_the_unreleased_changes_say_what_they_mean_for_certification() -> None:
    unreleased = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1]
    assert unreleased.startswith("[Unreleased]")
    assert re.search(r"^Certification: \S", unreleased, re.MULTILINE)


def test_the_image_is_built_from_all_that_the_wheel_holds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    held = project["tool"]["hatch"]["build"]["targets"]["wheel"]["include"]
    let_in = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{path.strip('/')}" for path in held} <= set(let_in)
