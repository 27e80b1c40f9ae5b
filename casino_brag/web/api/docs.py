"""The API's documentation as pages that need nothing from anywhere else: no script, no font, no picture."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, make_response, redirect, render_template
from flask_smorest import Api
from werkzeug.wrappers import Response as BaseResponse

from casino_brag.errors import MEANINGS

PAGE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
"""What a page of ours may do: be drawn in its own styles, and fetch nothing."""


def blueprint_for(api: Api) -> Blueprint:
    """The pages at /docs, drawn from the API's own OpenAPI document."""
    blueprint = Blueprint("docs", "docs")

    @blueprint.get("/")
    def front_door() -> BaseResponse:
        return redirect("/docs")

    @blueprint.get("/docs")
    def reference() -> Response:
        return _page("docs.html", api=api.spec.to_dict(), operations=_operations(api.spec.to_dict()))

    @blueprint.get("/docs/problems")
    def problems() -> Response:
        return _page("problems.html", meanings=MEANINGS)

    return blueprint


def _page(template: str, **values: Any) -> Response:
    response = make_response(render_template(template, **values))
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response


def _operations(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Operations by tag, in the document's order."""
    by_tag: dict[str, list[dict[str, Any]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in ("get", "post", "put", "delete"):
                by_tag[operation["tags"][0]].append(
                    {
                        **operation,
                        "path": path,
                        "method": method.upper(),
                        "path_parameters": item.get("parameters", []),
                    }
                )
    return by_tag
