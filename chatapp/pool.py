"""Connections that wait in psycopg's pool, and whether the server has hung up meanwhile."""

import selectors
from typing import Any

from psycopg import Connection
from psycopg_pool import ConnectionPool


def check(connection: "Connection[Any]") -> None:
    """Raise unless a waiting connection still leads to a server; the pool then takes another.

    An idle server sends nothing but its farewell, so a socket without news is fine. Asking the
    server each time, as CONN_HEALTH_CHECKS does, would cost a round trip for every step.
    """
    with selectors.DefaultSelector() as news:
        news.register(connection.fileno(), selectors.EVENT_READ)
        if news.select(0):
            ConnectionPool.check_connection(connection)
