"""The command line of each web server, read by that server's own parser."""

import importlib.util

import pytest
from daphne.cli import CommandLineInterface  # type: ignore[import-untyped]
from uvicorn.main import main as uvicorn

from chatapp import serve


def test_daphne_understands_its_command_line() -> None:
    name, *arguments = serve.command("daphne", bind="::1", port=1234)
    assert name == "daphne"
    read = CommandLineInterface().parser.parse_args(arguments)
    assert (read.host, read.port, read.application) == ("::1", 1234, serve.APPLICATION)
    assert read.websocket_max_frame_size == serve.LARGEST_FRAME
    assert read.websocket_max_message_size == serve.LARGEST_MESSAGE
    assert read.websocket_timeout == -1
    assert not read.proxy_headers
    assert read.verbosity == 0  # no access log


def test_uvicorn_understands_its_command_line() -> None:
    name, *arguments = serve.command("uvicorn", bind="0.0.0.0", port=1234)  # noqa: S104
    assert name == "uvicorn"
    read = uvicorn.make_context("uvicorn", list(arguments)).params
    assert (read["host"], read["port"], read["app"]) == ("0.0.0.0", 1234, serve.APPLICATION)  # noqa: S104
    assert read["ws_max_size"] == serve.LARGEST_FRAME
    assert not read["access_log"]
    assert not read["proxy_headers"]


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_neither_server_believes_what_a_browser_can_forge(server: str) -> None:
    assert "--proxy-headers" not in serve.command(server, bind="x", port=1)
    assert importlib.util.find_spec(server) is not None
