"""An identity provider for tests that is none of ours: Django OAuth Toolkit, in a process of its own on loopback.

It shares no code of OpenID Connect with what is tested: tokens are jwcrypto's there, and Authlib's here.

    with Provider.started(directory) as provider:
        provider.settings        # what the service is told of it
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests

from casino_brag.config import OidcSettings
from tests.running import free_port

CLIENT_ID: Final = "casino-brag"
CLIENT_SECRET: Final = "a secret of the client+the provider, 100 %: é"
PASSWORD: Final = "the provider's own password"
PEOPLE: Final = ("ada", "olga")
"""Whom the provider knows."""
BACK: Final = "http://127.0.0.1/console/provider/return"
"""Where it sends browsers, at any port (RFC 8252, 7.3)."""
START_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider that runs."""

    base: str

    @property
    def settings(self) -> OidcSettings:
        return OidcSettings(f"{self.base}/o", CLIENT_ID, CLIENT_SECRET)

    @property
    def environment(self) -> dict[str, str]:
        """The same for a service in a process of its own."""
        return {
            "CASINO_BRAG_OIDC_ISSUER": self.settings.issuer,
            "CASINO_BRAG_OIDC_CLIENT_ID": CLIENT_ID,
            "CASINO_BRAG_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        }

    @classmethod
    @contextmanager
    def started(cls, directory: Path) -> Iterator[Provider]:
        """Runs until the block ends."""
        provider = cls(f"http://localhost:{free_port()}")  # another site than 127.0.0.1 to a browser
        log_path = directory / "provider.log"
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, __file__, provider.base, str(directory)],
                stdout=log,
                stderr=log,
                env=os.environ,
            )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not provider._answers():
                assert process.poll() is None, log_path.read_text()
                assert time.monotonic() < deadline, log_path.read_text()
                time.sleep(0.1)
            yield provider
        finally:
            process.terminate()
            process.wait(timeout=30)

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.base}/o/.well-known/openid-configuration", timeout=5).ok
        except requests.ConnectionError:
            return False


def serve(base: str, directory: Path) -> None:
    """The process itself."""
    import django
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from django.conf import settings
    from django.http import HttpResponse

    key = generate_private_key(65537, 2048)
    settings.configure(
        SECRET_KEY="a secret of Django's",
        ALLOWED_HOSTS=["localhost"],
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": directory / "provider.sqlite3"}
        },
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.staticfiles",
            "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        ROOT_URLCONF="__main__",
        STATIC_URL="/static/",
        LOGIN_URL="/login",
        USE_TZ=True,
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "loaders": [
                        ("django.template.loaders.locmem.Loader", {"login.html": LOGIN}),
                        "django.template.loaders.app_directories.Loader",
                    ],
                    "context_processors": ["django.template.context_processors.request"],
                },
            }
        ],
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": key.private_bytes(
                Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
            ).decode(),
            "SCOPES": {"openid": "To know that it is you"},
        },
    )
    django.setup()

    from django.contrib.auth.models import User
    from django.contrib.auth.views import LoginView
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.handlers.wsgi import WSGIHandler
    from django.core.management import call_command
    from django.urls import include, path
    from oauth2_provider.models import Application
    from werkzeug.serving import run_simple

    globals()["urlpatterns"] = [
        path("login", LoginView.as_view(template_name="login.html")),
        path("favicon.ico", lambda _: HttpResponse(status=204)),
        path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    ]
    call_command("migrate", verbosity=0)
    for name in PEOPLE:
        User.objects.create_user(name, password=PASSWORD)
    Application.objects.create(
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        algorithm=Application.RS256_ALGORITHM,
        redirect_uris=BACK,
        name="The console",
    )
    run_simple("127.0.0.1", int(base.rpartition(":")[2]), StaticFilesHandler(WSGIHandler()), threaded=True)


LOGIN: Final = """<!doctype html><html lang="en"><title>Log in</title>
<form method="post">{% csrf_token %}{{ form.as_p }}<button>Log in</button></form></html>"""

if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
