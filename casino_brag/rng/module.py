"""Which module this is: one digest over its source, stored with every round it deals."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final


def module_digest(directory: Path) -> str:
    """SHA-256 (hex) over the names and contents of the module's source files, in the order of their names."""
    digest = hashlib.sha256()
    for source in sorted(directory.glob("*.py")):
        content = source.read_bytes()
        digest.update(f"{source.name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


MODULE_DIGEST: Final = module_digest(Path(__file__).parent)
