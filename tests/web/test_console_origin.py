"""How a browser calls the service: what the console makes of it where an address leaves it."""

from __future__ import annotations

import re
import secrets

import pytest
import requests

from casino_brag.staff.people import Role
from tests.colleagues import colleague
from tests.inprocess import AppHouse


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("casino.example.com", "https://casino.example.com"),
        ("casino.example.com:8443", "https://casino.example.com:8443"),
        ("localhost:8080", "http://localhost:8080"),
    ],
)
def test_a_link_to_join_has_the_name_that_the_browser_has_and_leads_over_tls(
    app_house: AppHouse, host: str, origin: str
) -> None:
    olga, anna = (colleague(app_house, role).signed_in() for role in (Role.OPERATIONS, Role.APPROVER))
    typed = {"subject": "new." + secrets.token_hex(4), "roles": "editor", "reason": "It was agreed."}
    path = olga.post("/staff/propose/staff_invite", **typed).headers["Location"].removeprefix("/console")
    anna.post(f"{path}/approve", of=path)
    (csrf,) = set(re.findall(r'name="_csrf" value="(\w+)"', olga.get(path).text))
    headers = {"Host": host, "Cookie": f"casino_brag_staff={olga.http.cookies['casino_brag_staff']}"}
    made = requests.post(olga.url(f"{path}/link"), data={"_csrf": csrf}, headers=headers, timeout=30)
    assert f"<code>{origin}/console/join/" in made.text
