"""Servers that the person brings along: what is off is said in one sentence."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from local import external, state
from local.refusal import Refusal
from local.servers import Servers

from tests.script.conftest import CLONE


def check(running: Servers, **changed: str) -> None:
    """Check the embedded servers as if somebody had brought them, with some things changed."""
    env = state.read_env(running.state.env)
    given = {
        "url": env["DATABASE_URL"],
        "owner_url": env["DATABASE_OWNER_URL"],
        "app": "recollect_app",
        "owner": "recollect_owner",
        "review": "recollect_review",
    }
    external.check_database(**(given | changed))


@contextmanager
def changed(running: Servers, do: str, undo: str, database: str = "recollect") -> Iterator[None]:
    """Something put wrong as the superuser, and put right again."""
    assert running.postgres is not None
    with running.postgres.connection(database) as superuser:
        superuser.execute(do)
        try:
            yield
        finally:
            superuser.execute(undo)


def test_what_roles_sql_made_passes(running: Servers) -> None:
    check(running)
    external.check_redis(state.read_env(running.state.env)["REDIS_URL"])


@pytest.mark.parametrize(
    ("do", "undo", "sentence"),
    [
        (
            "alter role recollect_web superuser",
            "alter role recollect_web nosuperuser",
            "superuser or a role with BYPASSRLS",
        ),
        (
            "alter role recollect_app bypassrls",
            "alter role recollect_app nobypassrls",
            "superuser or a role with BYPASSRLS",
        ),
        (
            "grant recollect_owner to recollect_web with inherit false, set true",
            "revoke recollect_owner from recollect_web",
            "member of recollect_owner, which owns the tables: revoke",
        ),
        (
            "revoke recollect_review from recollect_web",
            "grant recollect_review to recollect_web with inherit false, set true",
            "may not become recollect_review: script/roles.sql",
        ),
        (
            "revoke recollect_app from recollect_web",
            "grant recollect_app to recollect_web with inherit false, set true",
            "DATABASE_URL: 127.0.0.1:.* does not let us in as recollect_app: .*permission denied",
        ),
        (
            "grant create on schema public to recollect_app",
            "revoke create on schema public from recollect_app",
            "may create tables",
        ),
        (
            # Another name for it: it can't be dropped once another test has migrated.
            "update pg_extension set extname = 'vektor' where extname = 'vector'",
            "update pg_extension set extname = 'vector' where extname = 'vektor'",
            r"lacks the extension vector \(pgvector\): script/roles.sql",
        ),
        (
            "alter database recollect owner to postgres",
            "alter database recollect owner to recollect_owner",
            "recollect_owner of DATABASE_OWNER_URL may not create tables",
        ),
    ],
)
def test_each_fault_has_its_sentence(running: Servers, do: str, undo: str, sentence: str) -> None:
    with changed(running, do, undo), pytest.raises(Refusal, match=sentence):
        check(running)
    check(running)


def test_an_address_that_is_none_is_named_by_its_variable(running: Servers) -> None:
    with pytest.raises(Refusal, match="DATABASE_URL must look like postgres://"):
        check(running, url="mysql://x/y")
    with pytest.raises(Refusal, match=r"DATABASE_OWNER_URL: 127\.0\.0\.1:1 does not let us in"):
        check(running, owner_url="postgres://x:secret@127.0.0.1:1/y")
    with pytest.raises(Refusal, match="REDIS_URL must look like"):
        external.check_redis("http://x")


def test_a_sentence_never_holds_a_password(running: Servers) -> None:
    with pytest.raises(Refusal) as refusal:
        check(running, url="postgres://recollect_web:secret@127.0.0.1:1/y")
    assert "secret" not in str(refusal.value)
    for port in (1, running.keys.valkey_port):
        with pytest.raises(Refusal) as refusal:
            external.check_redis(f"redis://:secret@127.0.0.1:{port}/0")
        assert "secret" not in str(refusal.value)


def test_a_role_that_does_not_exist_is_named(running: Servers) -> None:
    with pytest.raises(Refusal, match="no role recollect_reviewer"):
        check(running, review="recollect_reviewer")


@pytest.mark.parametrize(
    ("do", "undo", "sentence"),
    [
        (
            "grant recollect_review to recollect_app with inherit true",
            "revoke recollect_review from recollect_app",
            "The role recollect_app has the rights of recollect_review",
        ),
        (
            "create role mighty bypassrls; grant mighty to recollect_web with inherit false",
            "drop role mighty",
            "The login may become mighty, to whom every row is open",
        ),
    ],
)
def test_the_wall_knows_of_rights_by_membership(
    running: Servers, do: str, undo: str, sentence: str
) -> None:
    command = [sys.executable, "manage.py", "check", "--database", "default"]
    given = os.environ | {"RECOLLECT_STATE": str(running.state.folder)}
    given = {name: value for name, value in given.items() if not name.startswith("DATABASE_")}
    with changed(running, do, undo):
        checked = subprocess.run(command, cwd=CLONE, env=given, capture_output=True, text=True)
    assert checked.returncode != 0
    assert sentence in checked.stderr
