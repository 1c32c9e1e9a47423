"""A real Chroma server in a process of its own, on the loopback, with an empty folder.

    with ChromaServer(folder) as server:
        ChromaProvider("127.0.0.1", server.port)
        server.stop()   # it is away
        server.start()  # and back, with what it kept

The program is one wheel, pinned in requirements-chroma.txt, which lies apart from .venv's packages
and is fetched there the first time. RECOLLECT_CHROMA names another folder that has it.
"""

import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import httpx2
import pytest

ROOT = Path(__file__).resolve().parent.parent
PINNED = ROOT / "requirements-chroma.txt"
RUN = "import sys, chromadb_rust_bindings as b; b.cli(['chroma', 'run', *sys.argv[1:]])"
STARTS_WITHIN = 20


def program() -> Path:
    """Return the folder that has Chroma; skip the test where it can't be had."""
    if given := os.environ.get("RECOLLECT_CHROMA"):
        return Path(given)
    folder = Path(sys.prefix) / "chroma"
    stamp = folder / ".installed"
    with (Path(sys.prefix) / ".chroma.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.is_file() or stamp.read_text() != PINNED.read_text():
            uv = Path(sys.executable).with_name("uv")
            done = subprocess.run(
                [
                    *(str(uv), "pip", "install", "--quiet", "--python", sys.executable),
                    *("--no-deps", "--require-hashes", "--target", str(folder)),
                    *("-r", str(PINNED)),
                ],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                pytest.skip(f"no Chroma server: {PINNED.name} could not be installed")
            stamp.write_text(PINNED.read_text())
    return folder


class ChromaServer:
    """A Chroma server that a test may stop and start again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = program()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process's id while it runs."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", RUN, "--path", str(self.folder)),
                *("--host", "127.0.0.1", "--port", str(self.port)),
            ],
            env=os.environ | {"PYTHONPATH": str(self.program)},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        ends = time.monotonic() + STARTS_WITHIN
        with httpx2.Client(trust_env=False, timeout=2) as client:
            while True:
                try:
                    client.get(f"http://127.0.0.1:{self.port}/api/v2/heartbeat").raise_for_status()
                    return
                except httpx2.HTTPError:
                    if self._process.poll() is not None or time.monotonic() > ends:
                        raise
                    time.sleep(0.02)

    def stop(self) -> None:
        """Stop it; nobody answers on its port until it is started again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
