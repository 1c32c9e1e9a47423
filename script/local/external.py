"""Checks servers that the person brings along, and says in one sentence what is off."""

import contextlib
from typing import Any
from urllib.parse import urlsplit

import psycopg
import psycopg.rows
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from local.refusal import Refusal

OLDEST_POSTGRES = 160000
OLDEST_VECTOR = (0, 7)  # halfvec
OLDEST_REDIS = 6
MENDED_BY = "script/roles.sql, run by a superuser, makes it so"

ONE_ROW = """
select current_setting('server_version_num')::int as version,
       current_setting('server_encoding') as encoding,
       (select extversion from pg_extension where extname = 'vector') as vector,
       (select rolsuper or rolbypassrls from pg_roles where rolname = session_user) as mighty,
       (select rolsuper or rolbypassrls from pg_roles where rolname = current_user) as mighty_role,
       has_schema_privilege('public', 'create') as creates
"""


def check_database(*, url: str, owner_url: str, app: str, owner: str, review: str) -> None:
    """Refuse unless both logins work and have exactly the rights that they should."""
    with _connected("DATABASE_URL", url, app) as connection:
        found = _row(connection)
        _check_version(found)
        if found["mighty"] or found["mighty_role"]:
            raise Refusal(
                "DATABASE_URL logs in as a superuser or a role with BYPASSRLS, for which no wall "
                f"between people stands: use a login as {MENDED_BY}."
            )
        for role in (owner, app, review):
            if not _exists(connection, role):
                raise Refusal(f"The database has no role {role}: {MENDED_BY}.")
        if found["creates"]:
            raise Refusal(
                f"The role {app} of DATABASE_URL may create tables, so it would own what it must "
                f"not: revoke create on schema public from it; {MENDED_BY}."
            )
        if _may_become(connection, owner):
            raise Refusal(
                f"The login of DATABASE_URL is a member of {owner}, which owns the tables: "
                f"revoke {owner} from it."
            )
        if not _may_become(connection, review):
            raise Refusal(f"The login of DATABASE_URL may not become {review}: {MENDED_BY}.")
    with _connected("DATABASE_OWNER_URL", owner_url, owner) as connection:
        found = _row(connection)
        if not found["creates"]:
            raise Refusal(
                f"The role {owner} of DATABASE_OWNER_URL may not create tables: {MENDED_BY}."
            )


def check_redis(url: str) -> None:
    """Refuse unless REDIS_URL leads to a server that answers and is new enough."""
    try:
        client = redis.Redis.from_url(
            url, socket_timeout=5, socket_connect_timeout=5, retry=Retry(NoBackoff(), 0)
        )
    except ValueError as error:
        raise Refusal(
            "REDIS_URL must look like redis://:password@host:port/0 (rediss:// for TLS)."
        ) from error
    with contextlib.closing(client):
        try:
            version = str(client.info("server")["redis_version"])
        except redis.RedisError as error:
            raise Refusal(
                f"REDIS_URL: {_place(url)} does not answer as it should: {error}."
            ) from error
    if int(version.split(".")[0]) < OLDEST_REDIS:
        raise Refusal(f"REDIS_URL leads to Redis {version}; {OLDEST_REDIS} or newer is needed.")


def _connected(name: str, url: str, role: str) -> "psycopg.Connection[dict[str, Any]]":
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"} or not parts.path.strip("/"):
        raise Refusal(f"{name} must look like postgres://user:password@host:port/name.")
    try:
        return psycopg.connect(
            url,
            options=f"-c role={role}",
            connect_timeout=10,
            autocommit=True,
            row_factory=psycopg.rows.dict_row,
        )
    except psycopg.OperationalError as error:
        said = str(error).strip().splitlines()[-1].strip()
        raise Refusal(f"{name}: {_place(url)} does not let us in as {role}: {said}.") from error


def _check_version(found: dict[str, Any]) -> None:
    if found["version"] < OLDEST_POSTGRES:
        raise Refusal(
            f"DATABASE_URL leads to Postgres {found['version'] // 10000}; "
            f"{OLDEST_POSTGRES // 10000} or newer is needed."
        )
    if found["encoding"] != "UTF8":
        raise Refusal(f"The database's encoding is {found['encoding']}; UTF8 is needed.")
    if found["vector"] is None:
        raise Refusal(f"The database lacks the extension vector (pgvector): {MENDED_BY}.")
    if tuple(int(part) for part in found["vector"].split(".")[:2]) < OLDEST_VECTOR:
        raise Refusal(
            f"The database has pgvector {found['vector']}; "
            f"{'.'.join(map(str, OLDEST_VECTOR))} or newer is needed."
        )


def _row(connection: "psycopg.Connection[dict[str, Any]]") -> dict[str, Any]:
    return connection.execute(ONE_ROW).fetchall()[0]


def _exists(connection: "psycopg.Connection[dict[str, Any]]", role: str) -> bool:
    query = "select 1 as found from pg_roles where rolname = %s"
    return connection.execute(query, [role]).fetchone() is not None


def _may_become(connection: "psycopg.Connection[dict[str, Any]]", role: str) -> bool:
    row = connection.execute(
        "select pg_has_role(session_user, %s, 'SET') as may", [role]
    ).fetchone()
    return bool(row and row["may"])


def _place(url: str) -> str:
    """The address without its password."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
