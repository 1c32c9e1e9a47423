"""Whether this process can do its work, for supervisors and load balancers."""

import logging
import os

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from redis import Redis
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("select 1")
    except DatabaseError as error:
        logger.warning("health: the database is away (%s)", type(error).__name__)
        return "away"
    return "ok"


def _redis() -> str:
    try:
        with Redis.from_url(
            settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1
        ) as redis:
            redis.ping()
    except (RedisError, OSError) as error:
        logger.warning("health: Redis is away (%s)", type(error).__name__)
        return "away"
    return "ok"


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Return 200 while chatting works, 503 without the database. Redis is reported, not needed."""
    database, redis = _database(), _redis()
    return JsonResponse(
        {"database": database, "redis": redis},
        status=200 if database == "ok" else 503,
        # By this script/server knows its own web server from whoever else took the port.
        headers={"X-Recollect-Start": os.environ.get("RECOLLECT_START", "")},
    )
