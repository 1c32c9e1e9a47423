"""What the installation was told: the process's variables, then the state folder's `env` file."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

ROOT = Path(__file__).resolve().parent.parent


def state_folder() -> Path:
    """Return the folder that holds everything this installation keeps on disk."""
    return Path(os.environ.get("RECOLLECT_STATE") or ROOT / ".state")


def read_state_file(path: Path) -> dict[str, str]:
    """Return the KEY=value lines of the state folder's file; empty where there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, value in pairs}


class Environment:
    """Answers for one variable at a time, and refuses nonsense by the variable's name."""

    def __init__(self, given: dict[str, str]) -> None:
        self.given = given

    @classmethod
    def read(cls) -> "Environment":
        """Return the variables in force; a real variable wins over the state folder's file."""
        kept = read_state_file(state_folder() / "env")
        return cls(kept | {key: value for key, value in os.environ.items() if value != ""})

    def text(self, name: str, default: str = "") -> str:
        return self.given.get(name, default)

    def required(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise ImproperlyConfigured(
                f"{name} is not set. script/server makes it; without it, set it yourself."
            )
        return value

    def whole(self, name: str, default: int, *, least: int = 0, most: int = 2**31 - 1) -> int:
        value = self.text(name, str(default))
        try:
            number = int(value)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise ImproperlyConfigured(
                f"{name} must be a whole number from {least} to {most}, not {value!r}."
            )
        return number

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.text(name, "1" if default else "0").lower()
        if value not in {"0", "1", "true", "false", "yes", "no", "on", "off"}:
            raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}.")
        return value in {"1", "true", "yes", "on"}

    def listed(self, name: str, default: str = "") -> list[str]:
        return [part.strip() for part in self.text(name, default).split(",") if part.strip()]

    def fernet_keys(self, name: str) -> list[str]:
        """Return keys that secrets are sealed with; each must be one, lest the first use fails."""
        keys = self.listed(name)
        for key in keys:
            try:
                Fernet(key)
            except ValueError as error:
                raise ImproperlyConfigured(
                    f"{name} must hold Fernet keys (URL-safe base64 of 32 bytes), with commas."
                ) from error
        return keys

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        value = self.text(name, choices[0])
        if value not in choices:
            raise ImproperlyConfigured(
                f"{name} must be one of {', '.join(choices)}, not {value!r}."
            )
        return value


def _port(parts: SplitResult) -> int | None:
    """Return the port, None where none is named; 0, which is no port, for nonsense."""
    try:
        return parts.port
    except ValueError:
        return 0


def database(url: str, variable: str) -> dict[str, Any]:
    """Return Django's settings for a `postgres://user:password@host:port/name` address.

    What stands behind a `?` (sslmode and its like) is for the driver.
    """
    parts = urlsplit(url)
    known = parts.scheme in {"postgres", "postgresql"}
    if not known or not parts.path.strip("/") or _port(parts) == 0:
        raise ImproperlyConfigured(
            f"{variable} must look like postgres://user:password@host:port/name."
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def mailer(url: str) -> dict[str, object]:
    """Return Django's settings for `console:` or `smtp[s|+tls]://user:password@host:port`."""
    parts = urlsplit(url)
    if parts.scheme == "console":
        return {"BACKEND": "django.core.mail.backends.console.EmailBackend"}
    known = parts.scheme in {"smtp", "smtps", "smtp+tls"}
    if not known or not parts.hostname or _port(parts) == 0:
        raise ImproperlyConfigured(
            "EMAIL_URL must be console: or smtp://user:password@host:port (smtps, smtp+tls)."
        )
    return {
        "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "OPTIONS": {
            "host": parts.hostname,
            "port": parts.port or {"smtp": 25, "smtps": 465, "smtp+tls": 587}[parts.scheme],
            "username": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "use_ssl": parts.scheme == "smtps",
            "use_tls": parts.scheme == "smtp+tls",
            "timeout": 10,
        },
    }


def memory_provider(url: str) -> dict[str, Any]:
    """Return MEMORY_PROVIDER for `pgvector:`, `chroma://host:port/namespace` or a class of yours.

    `chromas` is Chroma behind TLS. A class is named by its dotted path and may have options, all
    of them text: `my.module.Provider?option=value`.
    """
    parts = urlsplit(url)
    if url in {"pgvector", "pgvector:"}:
        return {"BACKEND": "memory.providers.pgvector.PgvectorProvider", "OPTIONS": {}}
    if parts.scheme in {"chroma", "chromas"} and parts.hostname and _port(parts) != 0:
        options: dict[str, Any] = {"host": parts.hostname, "port": parts.port or 8000}
        if parts.scheme == "chromas":
            options["ssl"] = True
        if parts.path.strip("/"):
            options["namespace"] = parts.path.strip("/")
        return {"BACKEND": "memory.providers.chroma.ChromaProvider", "OPTIONS": options}
    path = parts.path.split(".")
    if not parts.scheme and len(path) > 1 and all(part.isidentifier() for part in path):
        return {"BACKEND": parts.path, "OPTIONS": dict(parse_qsl(parts.query))}
    raise ImproperlyConfigured(
        "MEMORY_PROVIDER must be pgvector:, chroma://host:port (or chromas, with TLS), or the"
        " dotted path of a class."
    )
