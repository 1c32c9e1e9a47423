"""script/lint: every check that needs no running server; all are run, whatever fails."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from local import requirements
from local.front import command
from local.progress import WIDTH, say
from local.state import CLONE

FRONT = "#!/bin/sh", "#!/usr/bin/env bash", "#!/bin/bash"
# mypy's Django plugin loads the settings, which refuse to be without these.
SETTINGS = {
    "SECRET_KEY": "only for mypy",
    "FIELD_KEYS": "",
    "DATABASE_URL": "postgres://nobody@127.0.0.1:1/nothing",
    "DATABASE_OWNER_URL": "postgres://nobody@127.0.0.1:1/nothing",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "RECOLLECT_STATE": "/nonexistent",
}


@dataclass(frozen=True, slots=True)
class Check:
    """A name, and what gives the complaints: empty if there are none."""

    name: str
    complaints: Callable[[], str]


def main(arguments: Sequence[str]) -> int:
    """Run all checks; 1 if any complains."""
    failed = []
    for check in checks():
        started = time.monotonic()
        complaints = check.complaints()
        verdict = "failed" if complaints else "good"
        dots = "." * max(2, WIDTH - len(check.name))
        say(f"  {check.name} {dots} {verdict} {time.monotonic() - started:.1f} s")
        if complaints:
            failed.append(check.name)
            print(complaints.rstrip() + "\n", flush=True)
    say(f"script/lint: {', '.join(failed)} failed." if failed else "script/lint: all is well.")
    return 1 if failed else 0


def checks() -> Iterator[Check]:
    """The checks, the quick ones first."""
    python = (sys.executable, "-m")
    yield Check("Requirements", _requirements)
    yield Check("Shell", _shell)
    yield Check("Ruff", _ran([*python, "ruff", "check", "."]))
    yield Check("Ruff's format", _ran([*python, "ruff", "format", "--check", "."]))
    templates = [str(CLONE / "templates"), "--lint", "--quiet"]
    yield Check("djLint", _ran([*python, "djlint", *templates]))
    contracts = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    yield Check("Import contracts", _ran([sys.executable, "-c", contracts]))
    yield Check("mypy", _ran([*python, "mypy"], **SETTINGS))
    folder = CLONE / "script"
    packages = [item for name in _packages(folder) for item in ("-p", name)]
    path = os.pathsep.join([str(folder), str(CLONE)])
    yield Check(
        "mypy of the scripts", _ran([*python, "mypy", *packages], MYPYPATH=path, **SETTINGS)
    )


def shell_scripts(clone: Path = CLONE) -> list[Path]:
    """The files of ours that a shell reads."""
    places = [clone / ".ci" / "run", *(clone / "script").rglob("*"), *(clone / "docker").rglob("*")]
    return [
        path
        for path in sorted(places)
        if path.is_file() and path.read_bytes()[:40].startswith(tuple(map(str.encode, FRONT)))
    ]


def _packages(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/__init__.py"))


def _requirements() -> str:
    found = [
        *requirements.faults(CLONE, "requirements"),
        *requirements.faults(CLONE, "requirements-dev"),
        *requirements.faults(CLONE, "requirements-chroma"),
        *requirements.disagreements(CLONE, "requirements", "requirements-dev"),
    ]
    return "\n".join(found)


def _shell() -> str:
    complaints = []
    for path in shell_scripts():
        shell = "bash" if b"bash" in path.read_bytes()[:40] else "sh"
        parsed = subprocess.run([shell, "-n", path], capture_output=True, text=True, check=False)
        complaints.append(parsed.stderr)
    return "".join(complaints)


def _ran(arguments: Sequence[str], **environment: str) -> Callable[[], str]:
    def run() -> str:
        done = subprocess.run(
            arguments,
            cwd=CLONE,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        said = f"{done.stdout}{done.stderr}".strip()
        return (said or f"exit code {done.returncode}") if done.returncode else ""

    return run


if __name__ == "__main__":
    command(main)
