"""The background workers' application; each refuses to start behind a wall that does not stand."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
app = Celery("recollect")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory", "chatapp", "accounts"])


@worker_init.connect
def check_wall(**kwargs: Any) -> None:
    """Check the role before the first task."""
    from accounts.wall import check_role

    check_role()
