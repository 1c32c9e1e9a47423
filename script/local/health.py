"""Whether each process of the installation does its work."""

import contextlib
import http.client
import json
import time
from urllib.parse import urlsplit

from local import processes
from local.state import State

BEAT_SECONDS = 1.0


def web(address: str, host: str) -> bool:
    """Whether the web server answers that it is well; `host` is a name that it lets pass."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/healthz", headers={"Host": host})
            answer = connection.getresponse()
            json.loads(answer.read())
        except (OSError, ValueError, http.client.HTTPException):
            return False
        return answer.status == 200


def worker(redis_url: str, name: str) -> bool:
    """Whether this machine's worker of that name answers to a ping."""
    # Late, since it takes a third of a second.
    from celery import Celery
    from celery.utils.nodenames import gethostname

    node = f"{name}@{gethostname()}"
    with Celery(broker=redis_url, set_as_current=False) as celery:
        try:
            return bool(celery.control.ping(destination=[node], timeout=1.0, limit=1))
        except OSError:
            return False


def beat(state: State) -> bool:
    """Whether beat runs and has outlived its first second."""
    if "beat" not in processes.services(state.folder).values():
        return False
    time.sleep(BEAT_SECONDS)
    return "beat" in processes.services(state.folder).values()
