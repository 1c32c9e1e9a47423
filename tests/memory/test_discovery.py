"""Finding local model servers, and nothing else that listens."""

import http.server
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pytest_django import Settings

from memory.discovery import PORTS, Found, find_servers
from tests.stub_model import StubModel


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Accept connections on a free port and give each to `serve` in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            with client:
                client.settimeout(5)
                try:
                    serve(client)
                except OSError:
                    continue

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        thread.join(10)
        listener.close()


def saying(body: str, status: str = "200 OK") -> Callable[[socket.socket], None]:
    def serve(client: socket.socket) -> None:
        client.recv(65_536)
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body.encode())}\r\n\r\n"
        client.sendall((head + body).encode())

    return serve


def find(*ports: int, **options: Any) -> list[Found]:
    return find_servers(hosts=["127.0.0.1"], ports=dict.fromkeys(ports, "vLLM"), **options)


def test_a_model_server_is_found_with_its_models() -> None:
    with StubModel(models=["nomic-embed-text", "llama3.2"]) as stub:
        assert find(stub.port) == [
            Found("vLLM", f"http://127.0.0.1:{stub.port}/v1", ("llama3.2", "nomic-embed-text"))
        ]


@pytest.mark.parametrize(
    ("body", "name", "models"),
    [
        (
            '{"object":"list","data":[{"id":"qwen3:8b","owned_by":"library"}]}',
            "Ollama",
            ("qwen3:8b",),
        ),
        ('{"object":"list","data":null}', "vLLM", ()),
        (
            '{"object":"list","data":[{"id":"m.gguf","owned_by":"llamacpp"}]}',
            "llama.cpp",
            ("m.gguf",),
        ),
    ],
)
def test_servers_are_named_by_what_they_say(body: str, name: str, models: tuple[str, ...]) -> None:
    with listening(saying(body)) as port:
        assert [(found.name, found.models) for found in find(port)] == [(name, models)]


@pytest.mark.parametrize(
    "serve",
    [
        saying("<!doctype html><title>Django</title>"),
        saying('{"status": "ok"}'),
        saying('{"data": [1, 2]}'),
        saying('{"data": []}'),
        saying('{"object": "list", "data": [{"name": "x"}]}'),
        saying('{"object": "list", "data": [{"id": "x"}]}', "404 Not Found"),
        saying("[]"),
        saying(""),
        saying('{"object": "list", "data": [{"id": "x"', "200 OK"),
        lambda client: client.sendall(b"SSH-2.0-OpenSSH\r\n"),
        lambda client: client.close(),
    ],
)
def test_whatever_else_listens_is_not_taken_for_one(
    serve: Callable[[socket.socket], None],
) -> None:
    with listening(serve) as port:
        assert find(port) == []


def test_a_redirect_is_not_followed() -> None:
    with StubModel() as stub:

        def serve(client: socket.socket) -> None:
            client.recv(65_536)
            place = f"http://127.0.0.1:{stub.port}/v1/models"
            client.sendall(
                f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()
            )

        with listening(serve) as port:
            assert find(port) == []
        assert not stub.requests


def drip(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(40):
        client.sendall(b" ")
        time.sleep(0.05)


@pytest.mark.parametrize("serve", [drip, lambda client: time.sleep(2)])
def test_a_slow_port_holds_nothing_up(serve: Callable[[socket.socket], None]) -> None:
    with listening(serve) as slow, StubModel() as stub:
        began = time.monotonic()
        found = find(slow, stub.port, seconds=0.6)
        assert time.monotonic() - began < 1.6
        assert [server.base_url for server in found] == [stub.base_url]


def test_nothing_there_is_an_empty_list() -> None:
    with StubModel() as stub:
        port = stub.port
    assert find(port) == []
    assert find_servers(hosts=["no-such-host.invalid"], ports=PORTS) == []


def test_we_do_not_find_ourselves(settings: Settings) -> None:
    with StubModel() as stub:
        settings.PORT = stub.port
        assert find(stub.port) == []


def test_an_ordinary_web_server_on_the_port_is_not_one() -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert find(server.server_address[1]) == []
        finally:
            server.shutdown()
            thread.join()
