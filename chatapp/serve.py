"""`python -m chatapp.serve`: becomes the web server that WEB_SERVER names, on BIND and PORT."""

import os
import sys

from django.conf import settings

APPLICATION = "chatapp.asgi:application"
# The server closes a socket over this before our code can answer. We refuse a message of more
# than 64 KiB ourselves, and JSON's escapes make the text in a frame up to six times longer.
LARGEST_FRAME = 512 * 1024
STOP_SECONDS = 8


def command(server: str, *, bind: str, port: int, proxied: bool) -> list[str]:
    """Return the server's command line.

    Neither server writes an access log: addresses carry the tokens of invitations. Behind a proxy
    (HTTPS=1) the client's address is what the proxy says in X-Forwarded-For, which it must set
    itself and not pass on.
    """
    frame = str(LARGEST_FRAME)
    if server == "uvicorn":
        return [
            *("uvicorn", APPLICATION, "--host", bind, "--port", str(port)),
            *("--ws-max-size", frame, "--ws-per-message-deflate", "false"),
            *("--lifespan", "off", "--no-access-log", "--no-server-header"),
            *("--log-level", "warning", "--timeout-graceful-shutdown", str(STOP_SECONDS)),
            "--proxy-headers" if proxied else "--no-proxy-headers",
        ]
    return [
        *("daphne", "--bind", bind, "--port", str(port), "--verbosity", "0", "--no-server-name"),
        *("--websocket-max-message-size", frame, "--websocket-max-frame-size", frame),
        # A socket that stays open for days is no mistake.
        *("--websocket_timeout", "-1", "--application-close-timeout", str(STOP_SECONDS)),
        *(("--proxy-headers",) if proxied else ()),
        APPLICATION,
    ]


def main() -> None:
    """Replace this process by the server, so that signals and restarts reach it directly."""
    arguments = command(
        settings.WEB_SERVER, bind=settings.BIND, port=settings.PORT, proxied=settings.HTTPS
    )
    os.chdir(settings.BASE_DIR)
    os.execv(sys.executable, [sys.executable, "-m", *arguments])  # noqa: S606 - no shell wanted


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    main()
