"""Work that nobody waits for."""

from celery import shared_task
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts import throttle


@shared_task
def tidy() -> None:
    """Delete login sessions that ran out and tries that no limit looks at any more."""
    throttle.sweep()
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
