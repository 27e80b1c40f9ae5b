"""The HTTP contract: addresses, their schemas, and the OpenAPI document made from both."""

from __future__ import annotations

from importlib.metadata import version

from flask import Flask

from casino_brag.web.api import (
    checkpoints,
    closures,
    compliance,
    cors,
    docs,
    games,
    health,
    operator,
    paytable_drafts,
    paytables,
    player,
    reports,
    simulations,
    staff_reports,
)
from casino_brag.web.api.problems import ProblemApi


def register(app: Flask) -> None:
    """Puts every address of the API into the application."""
    app.config["OPENAPI_VERSION"] = "3.1.0"
    app.config["API_TITLE"] = "casino-brag"
    app.config["API_VERSION"] = "v1"
    app.config["OPENAPI_URL_PREFIX"] = "/"
    app.config["OPENAPI_JSON_PATH"] = "openapi.json"
    api = ProblemApi(
        app,
        spec_kwargs={
            "info": {
                "description": "House-banked 3 Card Brag: games, sessions, rounds.",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
                "x-package-version": version("casino-brag"),
            }
        },
    )
    api.spec.components.security_scheme(
        "session", {"type": "http", "scheme": "bearer", "description": "A session's token."}
    )
    api.spec.components.security_scheme(
        "signature",
        {
            "type": "apiKey",
            "in": "header",
            "name": "X-Signature",
            "description": "`v1=` and the hex HMAC-SHA256 of the request under an operator's secret: see docs/http.md.",
        },
    )
    api.spec.components.security_scheme(
        "staff",
        {
            "type": "http",
            "scheme": "bearer",
            "description": "A personal access token of `casino-brag staff token`; the roles named are each enough.",
        },
    )
    del api.spec.components.schemas[
        "PaginationMetadata"
    ]  # flask-smorest's own, for headers that are not ours
    for room in (
        games,
        player,
        operator,
        closures,
        reports,
        checkpoints,
        compliance,
        staff_reports,
        paytables,
        paytable_drafts,
        simulations,
        health,
    ):
        api.register_blueprint(room.blueprint)
    app.register_blueprint(docs.blueprint_for(api))
    cors.allow(app)
