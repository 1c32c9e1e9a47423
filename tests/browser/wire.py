"""A person's login without their browser: requests and sockets as a program makes them."""

import http.client
import json
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.browser.people import Person


class Wire:
    """A person's login without their browser: for any thread, and for what no browser sends."""

    def __init__(self, who: Person) -> None:
        self.address, self.port = who.product.address, who.product.port
        self.path = urlsplit(who.page.url).path
        kept = {cookie["name"]: cookie["value"] for cookie in who.context.cookies()}
        self.cookie = "; ".join(f"{name}={value}" for name, value in kept.items())
        self.token = kept.get("csrftoken", "")

    def post(self, path: str, given: dict[str, str] | bytes) -> tuple[int, str]:
        """Post a form, or bytes as they are; return the status and the page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = given if isinstance(given, bytes) else urlencode(given).encode()
        headers = {
            "Cookie": self.cookie,
            "X-CSRFToken": self.token,
            "Origin": self.address,
            "Content-Type": "application/x-www-form-urlencoded",
            "HX-Request": "true",
        }
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def socket(self, path: str = "") -> ClientConnection:
        """Open the socket of a page."""
        return connect(
            f"ws://127.0.0.1:{self.port}/ws{path or self.path}",
            additional_headers={"Cookie": self.cookie},
            origin=Origin(self.address),
            max_size=None,
        )


def until(socket: ClientConnection, kind: str, **wanted: Any) -> dict[str, Any]:
    while True:
        frame: dict[str, Any] = json.loads(socket.recv(timeout=20))
        if frame["type"] == kind and all(frame.get(key) == wanted[key] for key in wanted):
            return frame


def until_silent(socket: ClientConnection, *, seconds: float) -> None:
    """Read what still comes, at most ten frames, until nothing has come for so long."""
    for _ in range(10):
        try:
            socket.recv(timeout=seconds)
        except TimeoutError:
            return
    pytest.fail("The socket does not fall silent.")
