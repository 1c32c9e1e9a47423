"""The conversation, the web, and where everything is put together."""

from chatapp.celery import app as celery_app

__all__ = ["celery_app"]
