"""A server that restarts leaves nobody with a dead connection."""

from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg_pool import ConnectionPool

from chatapp.pool import check


def parameters() -> dict[str, Any]:
    given = connection.get_connection_params()
    kept = ("dbname", "user", "password", "host", "port")
    return {name: given[name] for name in kept if name in given}


def pid_of(pool: "ConnectionPool[Any]") -> int:
    with pool.connection() as one:
        return int(one.execute("select pg_backend_pid()").fetchone()[0])


@pytest.mark.parametrize("checked", [True, False])
def test_a_connection_that_was_cut_is_not_handed_out(db: None, checked: bool) -> None:
    with (
        ConnectionPool(
            kwargs=parameters(), min_size=1, max_size=1, check=check if checked else None, open=True
        ) as pool,
        psycopg.connect(**parameters()) as other,
    ):
        before = pid_of(pool)
        assert pid_of(pool) == before
        assert other.execute("select pg_terminate_backend(%s, 5000)", [before]).fetchone() == (
            True,
        )
        if checked:
            assert pid_of(pool) != before
        else:
            with pytest.raises(psycopg.OperationalError):
                pid_of(pool)
