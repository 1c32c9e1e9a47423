"""Send mail without letting anybody wait for it, or learn from the waiting."""

import email.policy
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.core.mail import EmailMessage as DjangoMessage

logger = logging.getLogger(__name__)
# What a mail server may be sent in one line; the usual 78 would break a link with "=".
_WHOLE_LINES = email.policy.default.clone(max_line_length=998)
_postman = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mail")


class Letter(DjangoMessage):
    """A mail whose long lines stay whole where it is only printed, so that a link can be copied."""

    def message(self, *, policy: Any = _WHOLE_LINES) -> Any:
        return super().message(policy=policy)


def send_later(message: DjangoMessage) -> "Future[None]":
    """Return at once; the message is sent by a thread of this process, and a failure is logged."""
    return _postman.submit(_send, message)


def _send(message: DjangoMessage) -> None:
    try:
        message.send()
    except Exception as error:
        # Never to whom, nor what: a mail server's refusal quotes the address.
        logger.error("mail could not be sent: %s", type(error).__name__)
