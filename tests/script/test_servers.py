"""The embedded servers: started, killed, found again, stopped, with all data kept."""

import os
import pwd
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from local import processes, servers, state
from local.postgres import Postgres
from local.servers import Servers
from local.state import State
from local.valkey import Valkey


@pytest.fixture
def fresh(own: State) -> Iterator[Servers]:
    """Servers of the test's own, stopped at the end."""
    made = servers.of(own, durable=False)
    yield made
    made.stop()


def both(of: Servers) -> tuple[Postgres, Valkey]:
    assert of.postgres is not None
    assert of.valkey is not None
    return of.postgres, of.valkey


def write(of: Servers) -> None:
    env = state.read_env(of.state.env)
    with psycopg.connect(env["DATABASE_OWNER_URL"], options="-c role=recollect_owner") as database:
        database.execute("create table kept (word text)")
        database.execute("insert into kept values ('here')")
    with redis.Redis.from_url(env["REDIS_URL"]) as client:
        client.set("kept", "here")


def read(of: Servers) -> tuple[str, str]:
    env = state.read_env(of.state.env)
    with psycopg.connect(env["DATABASE_OWNER_URL"], options="-c role=recollect_owner") as database:
        rows = database.execute("select word from kept").fetchall()
    with redis.Redis.from_url(env["REDIS_URL"], decode_responses=True) as client:
        word = client.get("kept")
    return rows[0][0], str(word)


def test_a_second_start_keeps_the_data(fresh: Servers, own: State) -> None:
    fresh.start()
    write(fresh)
    before = state.read_env(own.env)
    fresh.stop()
    assert both(fresh)[0].pid == both(fresh)[1].pid == 0
    again = servers.of(own, durable=False)
    again.start()
    assert read(again) == ("here", "here")
    assert state.read_env(own.env) == before


def test_servers_that_run_are_found_and_not_started_twice(running: Servers) -> None:
    postgres, valkey = both(running)
    before = (postgres.pid, valkey.pid)
    servers.of(running.state, durable=False).start()
    assert (postgres.pid, valkey.pid) == before


def test_killed_servers_come_back_with_their_data(own: State) -> None:
    durable = servers.of(own)
    try:
        durable.start()
        write(durable)
        postgres, valkey = both(durable)
        for pid in (postgres.pid, valkey.pid):
            os.kill(pid, signal.SIGKILL)
            processes.wait_gone([pid], 5)
        assert durable.dead() == ["Postgres", "Valkey"]
        durable.revive()
        assert durable.dead() == []
        assert read(durable) == ("here", "here")
    finally:
        durable.stop()


def test_a_pid_file_that_names_another_process_is_no_obstacle(fresh: Servers) -> None:
    fresh.start()
    postgres, _ = both(fresh)
    fresh.stop()
    (postgres.data / "postmaster.pid").write_text(
        f"{os.getpid()}\n{postgres.data}\n0\n{fresh.keys.postgres_port}\n\n127.0.0.1\n\n"
    )
    assert postgres.pid == 0
    assert postgres.start()
    assert postgres.answers()


def test_taken_ports_are_left_to_their_holders(fresh: Servers, own: State) -> None:
    before = fresh.keys.postgres_port, fresh.keys.valkey_port
    with (
        socket.create_server(("127.0.0.1", before[0])),
        socket.create_server(("127.0.0.1", before[1])),
    ):
        fresh.start()
        now = fresh.keys.postgres_port, fresh.keys.valkey_port
        assert not set(now) & set(before)
        assert f":{now[0]}/" in state.read_env(own.env)["DATABASE_URL"]
        assert state.keys_of(own) == fresh.keys


def test_half_a_cluster_is_made_anew(fresh: Servers) -> None:
    postgres, _ = both(fresh)
    (postgres.folder / "data.new" / "base").mkdir(parents=True)
    postgres.make()
    assert (postgres.data / "PG_VERSION").read_text() == "18\n"
    assert not (postgres.folder / "data.new").exists()
    assert not (postgres.folder / "superuser").exists()


def test_the_cluster_sorts_and_reads_the_same_everywhere(running: Servers) -> None:
    postgres, _ = both(running)
    with postgres.connection("recollect") as database:
        rows = database.execute(
            "select datname, pg_encoding_to_char(encoding), datlocprovider, datlocale, "
            "pg_get_userbyid(datdba) from pg_database where datname = current_database()"
        ).fetchall()
        assert rows == [("recollect", "UTF8", "b", "C.UTF-8", "recollect_owner")]
        extensions = "select extversion from pg_extension where extname = 'vector'"
        assert database.execute(extensions).fetchone()
    with postgres.connection("template1") as template:
        assert template.execute(extensions).fetchone()


def test_nobody_comes_in_without_a_password(running: Servers) -> None:
    port = running.keys.postgres_port
    for user in ("postgres", "recollect_web", "recollect_owner"):
        with pytest.raises(psycopg.OperationalError, match=r"password|not permitted"):
            psycopg.connect(f"postgres://{user}:wrong@127.0.0.1:{port}/recollect")
    with (
        redis.Redis(host="127.0.0.1", port=running.keys.valkey_port) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


def test_the_applications_login_has_exactly_its_rights(running: Servers) -> None:
    url = state.read_env(running.state.env)["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as database:
        for role in ("recollect_app", "recollect_review"):
            database.execute(f"set role {role}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                database.execute("create table mine (x int)")
        for role in ("recollect_owner", "postgres", "recollect_migrate"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                database.execute(f"set role {role}")


def test_the_roles_may_be_made_again(running: Servers) -> None:
    postgres, _ = both(running)
    with postgres.connection() as database:
        # As after an upgrade from a version, or a hand, that gave too much.
        database.execute("alter role recollect_web createdb inherit")
        database.execute("grant recollect_review to recollect_web with inherit true")
        postgres.bootstrap()
        query = "select rolcreatedb, rolinherit from pg_roles where rolname = 'recollect_web'"
        assert database.execute(query).fetchone() == (False, False)
        inherited = (
            "select bool_or(inherit_option) from pg_auth_members "
            "where member = 'recollect_web'::regrole"
        )
        assert database.execute(inherited).fetchone() == (False,)


def test_no_password_stands_on_a_command_line(running: Servers) -> None:
    keys = running.keys
    lines = "\n".join(process.command for process in processes.every())
    for secret in (keys.superuser, keys.migrate, keys.web, keys.valkey):
        assert secret not in lines


# An ordinary user's servers run as that user: there is no account to give up.
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other accounts to use")
def test_as_root_the_servers_run_under_an_account_without_rights(running: Servers) -> None:
    postgres, valkey = both(running)
    for pid in (postgres.pid, valkey.pid):
        owner = Path(f"/proc/{pid}").stat().st_uid
        assert pwd.getpwuid(owner).pw_name in ("postgres", "recollect")
