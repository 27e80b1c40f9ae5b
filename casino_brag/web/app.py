"""The WSGI application."""

from __future__ import annotations

from flask import Flask

from casino_brag.config import Config, read_config
from casino_brag.web import api, console, rate, requests
from casino_brag.web.logs import configure
from casino_brag.web.service import EXTENSION, Service


def create_app(config: Config | None = None) -> Flask:
    """The application; its configuration is the environment's unless one is given.

    It can be made before or after a fork: connections are opened by the process that uses them.
    """
    config = config or read_config()
    configure(config.log_format)
    app = Flask("casino_brag.web", static_folder=None)
    app.url_map.merge_slashes = False
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config["MAX_CONTENT_LENGTH"] = requests.BODY_BYTES_MAX + 1  # so that one byte too many is seen
    app.extensions[EXTENSION] = Service.of(config)
    requests.watch(app)
    rate.limit(app, config.rate_per_second)
    api.register(app)
    console.register(app)
    return app
