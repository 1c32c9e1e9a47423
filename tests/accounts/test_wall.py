from io import StringIO

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from pytest_django import Settings

from accounts.wall import check_role, wall_faults
from tests.conftest import as_owner


@pytest.mark.django_db
def test_the_wall_stands() -> None:
    assert wall_faults() == []
    check_role()


@pytest.mark.django_db
def test_another_role_is_told_by_its_name(settings: Settings) -> None:
    settings.APP_ROLE = "somebody_else"
    with pytest.raises(ImproperlyConfigured, match="is recollect_app, not somebody_else"):
        check_role()
    with pytest.raises(CommandError, match="somebody_else"):
        call_command("check", "--database", "default", stdout=StringIO(), stderr=StringIO())


@pytest.mark.django_db(transaction=True)
def test_the_owner_is_no_role_to_run_with() -> None:
    with as_owner():
        faults = " ".join(wall_faults())
    assert "The role in force is recollect_owner" in faults
    assert "owns tables" in faults
    assert "may become" in faults


@pytest.mark.django_db
def test_an_old_server_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.wall.OLDEST_POSTGRES", 990000)
    [fault] = wall_faults()
    assert "too old" in fault
