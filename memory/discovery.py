"""Language model servers on this machine, found where they usually listen.

Asks each usual port for its list of models and believes only an answer that is one. Plain sockets
and threads that nobody waits for: a port that answers with anything, slowly, or for ever costs a
second at most, and nothing is raised.
"""

import http.client
import json
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from django.conf import settings

from memory.model_list import models_in

PORTS = {11434: "Ollama", 8080: "llama.cpp", 1234: "LM Studio", 8000: "vLLM"}
HOSTS = ("127.0.0.1", "host.docker.internal")
SECONDS = 0.9
LARGEST = 1024 * 1024
# What their lists of models say of themselves.
_OWNERS = {
    "library": "Ollama",
    "llamacpp": "llama.cpp",
    "organization_owner": "LM Studio",
    "vllm": "vLLM",
}
_EMBEDDERS = ("embed", "minilm", "bge-", "rerank", "e5-")


@dataclass(frozen=True, slots=True)
class Found:
    """A model server that answered; the models for chatting come before those for embedding."""

    name: str
    base_url: str
    models: tuple[str, ...]


def find_servers(
    *, hosts: Sequence[str] = HOSTS, ports: dict[int, str] = PORTS, seconds: float = SECONDS
) -> list[Found]:
    """Return the model servers that answer within the time, in the order of hosts and ports."""
    answers: SimpleQueue[tuple[int, Found | None]] = SimpleQueue()
    deadline = time.monotonic() + seconds
    places = [(host, port) for host in hosts for port in ports]

    def ask(number: int, host: str, port: int) -> None:
        try:
            found = _ask(host, port, ports[port], deadline)
        except Exception:  # whatever listens there, it is no reason to fail
            found = None
        answers.put((number, found))

    for number, (host, port) in enumerate(places):
        threading.Thread(target=ask, args=(number, host, port), daemon=True).start()
    known: dict[int, Found] = {}
    for _answer in places:
        try:
            number, found = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        if found:
            known[number] = found
    return [known[number] for number in sorted(known)]


def _ask(host: str, port: int, usual: str, deadline: float) -> Found | None:
    if port == settings.PORT and host in {"127.0.0.1", "localhost", "::1"}:
        return None  # ourselves
    address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4]
    if host != "127.0.0.1" and str(address[0]).startswith("127."):
        return None  # the same servers a second time
    left = deadline - time.monotonic()
    connection = http.client.HTTPConnection(str(address[0]), port, timeout=max(0.05, left))
    try:
        connection.request("GET", "/v1/models", headers={"Host": f"{host}:{port}"})
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            return None
        read = bytearray()
        while piece := response.read1(65_536):
            read += piece
            if len(read) > LARGEST or time.monotonic() > deadline:
                return None
    finally:
        connection.close()
    answer = json.loads(read)
    models = models_in(answer)
    if models is None or "object" not in answer:
        return None
    models.sort(key=lambda model: any(word in model.lower() for word in _EMBEDDERS))
    return Found(_name(answer, usual), f"http://{host}:{port}/v1", tuple(models))


def _name(answer: dict[str, Any], usual: str) -> str:
    for entry in answer.get("data") or []:
        name = _OWNERS.get(str(entry.get("owned_by")).lower())
        if name:
            return name
    return usual
