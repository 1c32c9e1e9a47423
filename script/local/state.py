"""The one folder that holds everything that an installation knows."""

import errno
import fcntl
import hashlib
import json
import os
import pwd
import re
import secrets
import shutil
import socket
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from local.account import Account
from local.refusal import Refusal, disk_full, explained

CLONE = Path(__file__).resolve().parents[2]
SHARED = Path("/var/lib/recollect")
LEAST_SPACE = 200 * 1024 * 1024
DATABASE = "recollect"
PORTS = range(20000, 32000)
ADDRESSES = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL")


@dataclass(frozen=True, slots=True)
class State:
    """A state folder and where the things in it stand."""

    folder: Path

    @property
    def env(self) -> Path:
        """Secrets and addresses, KEY=value lines, which the application's settings read."""
        return self.folder / "env"

    @property
    def keys(self) -> Path:
        """Ports and passwords of the embedded servers; the application does not read it."""
        return self.folder / "servers.json"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def run(self) -> Path:
        """What only matters while it runs: locks, pids, the supervisor's settings."""
        return self.folder / "run"

    @property
    def borrowed(self) -> Path:
        """In a folder of test servers: names the state folder that they were made under."""
        return self.folder / "made-under"

    def for_tests(self) -> bool:
        """Whether this is a folder of test servers."""
        return os.path.exists(self.borrowed)  # False, not an error, for a folder that is closed

    @property
    def beat(self) -> Path:
        return self.folder / "beat"


def chosen(
    environ: Mapping[str, str], account: Account, clone: Path = CLONE
) -> tuple[Path, str | None]:
    """The state folder, and a sentence when it is not where one would look for it."""
    if named := environ.get("RECOLLECT_STATE"):
        folder = Path(os.path.abspath(Path(named).expanduser()))
        if not account.reaches(folder):
            raise Refusal(
                f"RECOLLECT_STATE is {folder}, which the account '{account.name}' of the embedded "
                f"servers cannot reach: choose a folder such as {SHARED}/{clone.name}, or open "
                "its parent folders."
            )
        return folder, None
    if account.reaches(clone):
        return clone / ".state", None
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", clone.name).strip(".-") or "clone"
    mark = hashlib.sha256(os.fsencode(clone)).hexdigest()[:8]
    folder = SHARED / f"{name}-{mark}"
    return folder, (
        f"{clone} lies under a folder that the account '{account.name}' of the embedded servers "
        f"cannot enter, so the state is kept in {folder}."
    )


def prepared(folder: Path) -> State:
    """The state folder, made if need be and found usable, or one clear sentence why not."""
    state = State(folder)
    with explained(folder):
        if folder.exists() and not folder.is_dir():
            raise Refusal(f"{folder} is to be the state folder, but it is a file: move it away.")
        folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        owner = folder.stat().st_uid
        if owner != os.geteuid():
            raise Refusal(
                f"The state folder {folder} belongs to {_person(owner)}, and you are "
                f"{_person(os.geteuid())}: start as {_person(owner)}, or set RECOLLECT_STATE to a "
                "folder of your own."
            )
        # Others may pass (the account of the servers has its folder inside) but not look.
        folder.chmod(0o711)
        for path in (state.logs, state.run, state.beat):
            path.mkdir(exist_ok=True, mode=0o700)
        if shutil.disk_usage(folder).free < LEAST_SPACE:
            raise disk_full(folder)
        probe = folder / ".probe"
        probe.write_bytes(b"\0" * 4096)
        probe.unlink()
    return state


@contextmanager
def locked(file: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the file's lock; yields False at once if another process has it and `wait` is off."""
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def write_private(file: Path, text: str) -> None:
    """Replace a file in one move; only its owner can read it at any time."""
    fresh = file.with_name(file.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    fresh.replace(file)


def read_env(file: Path) -> dict[str, str]:
    """The KEY=value lines of a file; empty if there is none."""
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.partition("=") for line in lines if line.strip() and line.lstrip()[0] != "#")
    return {key.strip(): value.strip() for key, _, value in pairs}


def with_values(text: str, values: Mapping[str, str]) -> str:
    """The text of an env file with these values; all other lines stay as they are."""
    left = dict(values)
    lines = []
    for line in text.splitlines():
        key = line.partition("=")[0].strip()
        lines.append(f"{key}={left.pop(key)}" if key in left else line)
    lines += [f"{key}={value}" for key, value in left.items()]
    return "\n".join(lines) + "\n"


@dataclass(slots=True)
class Keys:
    """Ports and passwords of the embedded servers, made once and remembered."""

    postgres_port: int
    valkey_port: int
    superuser: str
    migrate: str
    web: str
    valkey: str

    def addresses(self) -> dict[str, str]:
        """The three addresses under which the application finds its servers."""
        host = f"127.0.0.1:{self.postgres_port}/{DATABASE}"
        return {
            "DATABASE_URL": f"postgres://recollect_web:{self.web}@{host}",
            "DATABASE_OWNER_URL": f"postgres://recollect_migrate:{self.migrate}@{host}",
            "REDIS_URL": f"redis://:{self.valkey}@127.0.0.1:{self.valkey_port}/0",
        }


def keys_of(state: State) -> Keys:
    """The embedded servers' ports and passwords; new ones on a fresh install."""
    if not state.keys.exists():
        if (state.folder / "postgres" / "data").exists():
            raise Refusal(
                f"{state.keys} is gone, and with it the passwords of the database in "
                f"{state.folder / 'postgres'}: put it back from a backup."
            )
        made = [secrets.token_urlsafe(32) for _ in range(4)]
        save_keys(state, Keys(free_port(), free_port(), *made))
    try:
        stored: dict[str, Any] = json.loads(state.keys.read_text())
        return Keys(**stored)
    except (ValueError, TypeError) as error:
        raise Refusal(f"{state.keys} cannot be read: put it back from a backup.") from error


def save_keys(state: State, keys: Keys) -> None:
    """Remember ports and passwords."""
    fields = {name: getattr(keys, name) for name in Keys.__slots__}
    write_private(state.keys, json.dumps(fields, indent=1) + "\n")


def save_env(state: State, addresses: Mapping[str, str]) -> None:
    """Write the addresses into the env file, and the secrets if they are not there yet."""
    present = read_env(state.env)
    values = dict(addresses)
    if "SECRET_KEY" not in present:
        values["SECRET_KEY"] = secrets.token_urlsafe(64)
    if "FIELD_KEYS" not in present:
        values["FIELD_KEYS"] = urlsafe_b64encode(secrets.token_bytes(32)).decode()
    text = state.env.read_text() if state.env.exists() else HEADING
    changed = with_values(text, values)
    if not state.env.exists() or changed != text:
        write_private(state.env, changed)
    elif state.env.stat().st_mode & 0o077:
        state.env.chmod(0o600)


HEADING = """\
# Made once by script/server. Keep it private and in your backups: without FIELD_KEYS the stored
# provider keys cannot be read. Other variables of the README may be added below, one a line.
"""


def own_addresses(
    environ: Mapping[str, str], present: Mapping[str, str], keys: Keys | None
) -> dict[str, str]:
    """The addresses of servers that the person brings along; empty means the embedded ones.

    They count from the environment, and from the env file where they were written by hand.
    """
    found = {}
    for name in ADDRESSES:
        if environ.get(name):
            found[name] = environ[name]
        elif present.get(name) and not _ours(present[name], keys):
            found[name] = present[name]
    return found


def _ours(address: str, keys: Keys | None) -> bool:
    password = urlsplit(address).password
    return keys is not None and password in {keys.web, keys.migrate, keys.valkey}


def free_port() -> int:
    """A loopback port that nobody listens on now.

    Below those that systems hand out to outgoing connections, so that none takes it meanwhile.
    """
    while True:
        port = PORTS.start + secrets.randbelow(len(PORTS))
        if port_is_free(port):
            return port


def port_is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now; OSError if it never could."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As servers do: connections of a former server that still linger are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True


def _person(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
