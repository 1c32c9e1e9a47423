"""The background workers' application; each refuses to start behind a wall that does not stand."""

import os
from typing import Any

from celery import Celery
from celery.signals import task_postrun, task_prerun, worker_init, worker_process_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
NICENESS = 10
app = Celery("recollect")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Celery's Django fixup closes psycopg's whole pool before and after every task (measured: 8.5 ms
# of CPU for a task that does nothing, 1.9 without). A connection goes back to the pool instead.
app.conf["CELERY_DB_REUSE_MAX"] = 10**9
app.autodiscover_tasks(["memory", "chatapp", "accounts"])


@worker_init.connect
def check_wall(**kwargs: Any) -> None:
    """Check the role before the first task."""
    from accounts.wall import check_role

    check_role()


@worker_process_init.connect
def step_back(**kwargs: Any) -> None:
    """Let replies go first: remembering the first of fifty must not slow down the last."""
    os.nice(NICENESS)


@task_prerun.connect
@task_postrun.connect
def return_connections(**kwargs: Any) -> None:
    """Give a task's database connection back to the pool, or drop it if it is broken."""
    from django.db import close_old_connections

    close_old_connections()
