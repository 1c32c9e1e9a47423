"""What the rest of the product hears about people."""

from functools import partial

from django.db import transaction
from django.dispatch import Signal

login_ended = Signal()
"""Sent when a login is over: `user_id`; `tenant_id` or None for all of the person's tenants;
`session_key` of the one login session that ended, or None for all of the person's; `renewed`, the
old key of the one login session that goes on under a new one, or None."""


def end_login(
    *,
    user_id: int,
    tenant_id: int | None = None,
    session_key: str | None = None,
    renewed: str | None = None,
) -> None:
    """Send `login_ended` once the transaction holds; a receiver that fails undoes nothing."""
    told = {
        "user_id": user_id,
        "tenant_id": tenant_id,
        "session_key": session_key,
        "renewed": renewed,
    }
    transaction.on_commit(partial(login_ended.send_robust, sender=None, **told))
