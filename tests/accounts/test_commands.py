from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from tests.accounts.conftest import PASSWORD, personal


def run(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def test_the_printed_link_opens(client: Client, db: None, settings: Settings) -> None:
    settings.PORT = 9876
    address = run("first_link").strip()
    assert address.startswith("http://127.0.0.1:9876/first/")
    assert client.get(address.removeprefix("http://127.0.0.1:9876")).status_code == 200


def test_nothing_is_printed_once_there_is_an_operator(operator: User) -> None:
    assert run("first_link") == ""


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_EMAIL", "olga@Example.org")
    monkeypatch.setenv("DJANGO_SUPERUSER_NAME", "Olga")
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)


def test_createsuperuser_makes_an_operator_from_variables(variables: None, db: None) -> None:
    run("createsuperuser", "--noinput")
    olga = User.objects.get()
    assert olga.email == "olga@example.org"
    assert olga.is_operator
    assert olga.check_password(PASSWORD)
    assert personal(olga).is_admin


def test_createsuperuser_asks_where_somebody_sits_at_it(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["olga@example.org", "Olga"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    monkeypatch.setattr("getpass.getpass", lambda *prompt: PASSWORD)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    call_command("createsuperuser", stdout=StringIO(), stdin=_Terminal())
    assert User.objects.get().is_operator


class _Terminal:
    def isatty(self) -> bool:
        return True


def test_createsuperuser_refuses_a_taken_address_in_a_sentence(variables: None, db: None) -> None:
    run("createsuperuser", "--noinput")
    with pytest.raises(CommandError, match="already an account"):
        run("createsuperuser", "--noinput")


def test_createsuperuser_refuses_a_blank_name(
    variables: None, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_NAME", "\u200b")
    with pytest.raises(CommandError, match="The name is empty"):
        run("createsuperuser", "--noinput")


def test_a_person_is_disabled_and_enabled_by_address(mara: User) -> None:
    run("person", "disable", "MARA@example.org")
    mara.refresh_from_db()
    assert not mara.is_active
    run("person", "enable", "mara@example.org")
    mara.refresh_from_db()
    assert mara.is_active
    with pytest.raises(CommandError, match="no account"):
        run("person", "disable", "nobody@example.org")


def test_check_tells_that_the_wall_stands(db: None) -> None:
    run("check", "--database", "default")
