"""The second wall, checked where each process starts."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

OLDEST_POSTGRES = 160000  # GRANT ... WITH INHERIT FALSE came with 16.


def wall_faults() -> list[str]:
    """Return a sentence for each way in which this connection is stronger or weaker than it may be.

    Empty when the role owns nothing, is no superuser, can't bypass row level security, inherits
    nothing, can't become the owner, and the server is new enough and has pgvector.
    """
    with connection.cursor() as cursor:
        cursor.execute("select current_setting('server_version_num')::int, current_user")
        version, role = cursor.fetchone()
        faults = []
        if version < OLDEST_POSTGRES:
            faults.append(f"Postgres {version // 10000} is too old: 16 or newer is needed.")
            return faults
        if role != settings.APP_ROLE:
            faults.append(f"The role in force is {role}, not {settings.APP_ROLE}.")
        cursor.execute(
            "select rolname, rolsuper, rolbypassrls, rolinherit from pg_roles"
            " where rolname in (current_user, session_user)"
        )
        for name, superuser, bypass, inherit in cursor.fetchall():
            if superuser:
                faults.append(f"The role {name} is a superuser, to whom every row is open.")
            if bypass:
                faults.append(f"The role {name} has BYPASSRLS.")
            if inherit and name != settings.APP_ROLE:
                faults.append(f"The login {name} inherits rights (it needs NOINHERIT).")
        cursor.execute(
            "select rolname from pg_roles r where rolname not in (current_user, session_user)"
            " and not exists (select 1 from pg_roles where rolname = current_user and rolsuper)"
            " and pg_has_role(current_user, r.oid, 'USAGE') order by rolname"
        )
        for (other,) in cursor.fetchall():
            faults.append(f"The role {role} has the rights of {other}: revoke it.")
        cursor.execute(
            "select rolname from pg_roles r where (rolsuper or rolbypassrls)"
            " and rolname not in (current_user, session_user)"
            " and not exists (select 1 from pg_roles where rolname = session_user and rolsuper)"
            " and pg_has_role(session_user, r.oid, 'SET') order by rolname"
        )
        for (other,) in cursor.fetchall():
            faults.append(f"The login may become {other}, to whom every row is open.")
        cursor.execute(
            "select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where n.nspname = 'public' and pg_get_userbyid(c.relowner)"
            " in (current_user, session_user)"
        )
        if cursor.fetchone()[0]:
            faults.append("The application's role owns tables.")
        cursor.execute(
            "select exists (select 1 from pg_roles where rolname = %s),"
            " exists (select 1 from pg_extension where extname = 'vector')",
            [settings.OWNER_ROLE],
        )
        owner_exists, vector = cursor.fetchone()
        if not vector:
            faults.append("The extension vector is missing: CREATE EXTENSION vector.")
        if owner_exists:
            cursor.execute("select pg_has_role(session_user, %s, 'SET')", [settings.OWNER_ROLE])
            if cursor.fetchone()[0]:
                faults.append(f"The login may become {settings.OWNER_ROLE}, the tables' owner.")
        return faults


def check_role() -> None:
    """Refuse to go on (ImproperlyConfigured) unless the database's wall stands."""
    faults = wall_faults()
    if faults:
        raise ImproperlyConfigured("The database is not safe to use. " + " ".join(faults))
