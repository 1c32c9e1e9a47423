from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from accounts.models import Attempt, User
from accounts.tasks import tidy

pytestmark = pytest.mark.django_db


def test_tidying_takes_what_ran_out_and_nothing_else(as_mara: Client, bob: User) -> None:
    gone = Client()
    gone.force_login(bob)
    Session.objects.filter(pk=gone.session.session_key).update(expire_date=timezone.now())
    Attempt.objects.create(key="old", at=timezone.now() - timedelta(days=1))
    Attempt.objects.create(key="new")
    tidy()
    assert Session.objects.get().pk == as_mara.session.session_key
    assert Attempt.objects.get().key == "new"
