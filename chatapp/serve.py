"""`python -m chatapp.serve`: becomes the web server that WEB_SERVER names, on BIND and PORT."""

import os
import runpy
import sys

from django.conf import settings

APPLICATION = "chatapp.asgi:application"
# The server closes a socket over this before our code can answer. We refuse a message of more
# than 64 KiB ourselves, and JSON's escapes make the text in a frame up to six times longer.
LARGEST_FRAME = 512 * 1024
# Daphne's limit of a message holds for what it sends, too: a whole reply, with its HTML.
LARGEST_MESSAGE = 16 * 1024 * 1024
STOP_SECONDS = 8


def command(server: str, *, bind: str, port: int) -> list[str]:
    """Return the server's command line.

    Neither server writes an access log: addresses carry the tokens of invitations. Neither reads
    a proxy's headers: Daphne believes the leftmost address of X-Forwarded-For, which a browser
    can forge; accounts.client counts from the right instead.
    """
    frame = str(LARGEST_FRAME)
    if server == "uvicorn":
        return [
            *("uvicorn", APPLICATION, "--host", bind, "--port", str(port)),
            *("--ws-max-size", frame, "--ws-per-message-deflate", "false"),
            *("--lifespan", "off", "--no-access-log", "--no-server-header"),
            *("--log-level", "warning", "--timeout-graceful-shutdown", str(STOP_SECONDS)),
            "--no-proxy-headers",
        ]
    return [
        *("daphne", "--bind", bind, "--port", str(port), "--verbosity", "0", "--no-server-name"),
        *("--websocket-max-message-size", str(LARGEST_MESSAGE)),
        *("--websocket-max-frame-size", frame),
        # A socket that stays open for days is no mistake.
        *("--websocket_timeout", "-1", "--application-close-timeout", str(STOP_SECONDS)),
        APPLICATION,
    ]


def main() -> None:
    """Become the server, in this very process: signals reach it, and nothing is loaded twice."""
    sys.argv = command(settings.WEB_SERVER, bind=settings.BIND, port=settings.PORT)
    os.chdir(settings.BASE_DIR)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    main()
