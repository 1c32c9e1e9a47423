"""Whether each process of the installation does its work."""

import contextlib
import http.client
import json
from urllib.parse import urlsplit

from redis import RedisError

from local.state import State


def web(address: str, host: str, start: str) -> bool:
    """Whether the web server of this start answers that it is well.

    `host` is a name that it lets pass. Another one may have taken the port in the last moment.
    """
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/healthz", headers={"Host": host})
            answer = connection.getresponse()
            json.loads(answer.read())
        except (OSError, ValueError, http.client.HTTPException):
            return False
        return answer.status == 200 and answer.headers["X-Recollect-Start"] == start


def worker(redis_url: str, name: str) -> bool:
    """Whether this machine's worker of that name answers to a ping."""
    # Late, since it takes a third of a second.
    from celery import Celery
    from celery.utils.nodenames import gethostname
    from kombu.exceptions import KombuError

    node = f"{name}@{gethostname()}"
    with Celery(broker=redis_url, set_as_current=False) as celery:
        try:
            return bool(celery.control.ping(destination=[node], timeout=1.0, limit=1))
        except (OSError, KombuError, RedisError):
            return False


def beat(state: State, since: float) -> bool:
    """Whether beat has written its schedule down since then: the last thing it does to start."""
    # Whole seconds: not every file system counts in smaller ones.
    return any(int(file.stat().st_mtime) >= int(since) for file in state.beat.glob("schedule*"))
