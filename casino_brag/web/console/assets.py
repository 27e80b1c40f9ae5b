"""The console's own files: each at an address that holds its digest, so that a browser may keep it for good."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from flask import Response, request

from casino_brag.errors import Code, ServiceError

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""What is served, by the ends of names; the licences beside it are not."""

_FOREVER: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, its kind of content, and the SHA-256 of it in hex."""

    content: bytes
    content_type: str
    digest: str


def static_url(name: str) -> str:
    """Where a file of ``web/static`` is served; an assertion for one that is not there.

    >>> static_url("console.css").startswith("/console/static/")
    True
    """
    assert name in _assets(), f"there is no static file {name}"
    return f"/console/static/{_assets()[name].digest[:16]}/{name}"


def serve(digest: str, name: str) -> Response:
    """The file of this name, if it has this digest; `not_found` otherwise."""
    asset = _assets().get(name)
    if asset is None or asset.digest[:16] != digest:
        raise ServiceError(Code.NOT_FOUND, "There is no such file. Load the page again.")
    response = Response(asset.content, content_type=asset.content_type, headers={"Cache-Control": _FOREVER})
    response.set_etag(asset.digest)
    response.make_conditional(request)
    return response


@cache
def _assets() -> dict[str, Asset]:
    return dict(_files(resources.files("casino_brag.web").joinpath("static"), ""))


def _files(folder: Traversable, within: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for item in folder.iterdir():
        name = f"{within}{item.name}"
        if item.is_dir():
            found.extend(_files(item, f"{name}/"))
        elif content_type := _TYPES.get(name.rpartition(".")[2]):
            content = item.read_bytes()
            found.append((name, Asset(content, content_type, sha256(content).hexdigest())))
    return found
