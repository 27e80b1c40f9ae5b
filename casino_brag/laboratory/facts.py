"""What was built from what: the files of module and package, and the software under them."""

from __future__ import annotations

import platform
import ssl
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import numpy as np

from casino_brag.rng.module import DIRECTORY, MANIFEST, module_files
from casino_brag.rounds.integrity import package_files


def build_facts() -> dict[str, str]:
    """The software that takes part in a draw, or in testing it, with its versions."""
    return {
        "casino-brag": version("casino-brag"),
        "Python": f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}",
        "OpenSSL (computes HMAC)": ssl.OPENSSL_VERSION,
        "C library": " ".join(platform.libc_ver()).strip() or "not known",
        "Kernel": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "NumPy (statistics only)": np.__version__,
    }


def module_digests() -> dict[str, str]:
    """SHA-256 (hex) of each file of the module and of its manifest, by name."""
    return {file.name: digest(file) for file in [*module_files(), DIRECTORY / MANIFEST]}


def package_digests() -> dict[str, str]:
    """SHA-256 (hex) of every file that the package's manifest covers, by the name that it has there."""
    return {name: digest(file) for name, file in sorted(package_files().items())}


def digest(file: Path) -> str:
    """SHA-256 (hex) of a file's content."""
    total = sha256()
    with file.open("rb") as content:
        while block := content.read(1 << 20):
            total.update(block)
    return total.hexdigest()
