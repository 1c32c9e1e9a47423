"""When a start may skip the preparation: only if code and database are those of the last one."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from local import mark, state
from local.servers import Servers
from local.state import State

OWNER, APP = "recollect_owner", "recollect_app"


@pytest.fixture
def clone(folder: Path) -> Path:
    """A clone with next to nothing in it."""
    for name in (*(f"{place}/one.py" for place in mark.FOLDERS), *mark.FILES):
        (folder / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "clone" / name).write_text("1\n")
    return folder / "clone"


def as_owner(servers: Servers, statement: str) -> None:
    url = state.read_env(servers.state.env)["DATABASE_OWNER_URL"]
    with psycopg.connect(url, options=f"-c role={OWNER}") as connection:
        connection.execute(statement.encode())


@pytest.fixture
def url(running: Servers) -> Iterator[str]:
    """The application's address of a database in which one migration has run.

    Other tests may have migrated the same database: they find it as it was.
    """
    as_owner(running, "alter table if exists django_migrations rename to migrations_before")
    as_owner(running, "create table django_migrations (app text, name text)")
    as_owner(running, f"grant select on django_migrations to {APP}")
    as_owner(running, "insert into django_migrations values ('memory', '0001')")
    yield state.read_env(running.state.env)["DATABASE_URL"]
    as_owner(running, "drop table django_migrations")
    as_owner(running, "alter table if exists migrations_before rename to django_migrations")


def stands(own: State, url: str, clone: Path) -> bool:
    return mark.stands(own, url=url, role=APP, clone=clone)


def test_it_stands_while_nothing_changes(own: State, url: str, clone: Path) -> None:
    assert not stands(own, url, clone)
    mark.leave(own, url=url, role=APP, clone=clone)
    assert stands(own, url, clone)
    mark.remove(own)
    assert not stands(own, url, clone)


@pytest.mark.parametrize("name", [f"{place}/new" for place in mark.FOLDERS] + list(mark.FILES))
def test_it_falls_with_the_code(own: State, url: str, clone: Path, name: str) -> None:
    mark.leave(own, url=url, role=APP, clone=clone)
    (clone / name).write_text("2\n")
    assert not stands(own, url, clone)


def test_it_falls_with_a_database_that_was_put_back(
    own: State, url: str, clone: Path, running: Servers
) -> None:
    mark.leave(own, url=url, role=APP, clone=clone)
    as_owner(running, "delete from django_migrations")
    assert not stands(own, url, clone)


def test_it_falls_with_a_database_that_does_not_answer(own: State, url: str, clone: Path) -> None:
    mark.leave(own, url=url, role=APP, clone=clone)
    port = state.free_port()
    assert not stands(own, f"postgres://x:y@127.0.0.1:{port}/z", clone)
