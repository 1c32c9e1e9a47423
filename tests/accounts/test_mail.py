import logging

import pytest
from django.core.mail import EmailMessage

from accounts.mail import Letter, send_later

MESSAGE = EmailMessage("A subject", "A secret link", to=["mara@example.org"])


def test_mail_is_sent_without_waiting(mailoutbox: list[EmailMessage]) -> None:
    send_later(MESSAGE).result(timeout=10)
    assert [message.subject for message in mailoutbox] == ["A subject"]


def test_a_failure_is_logged_without_saying_to_whom(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: EmailMessage) -> int:
        raise OSError("mara@example.org refused")

    monkeypatch.setattr(EmailMessage, "send", fail)
    with caplog.at_level(logging.ERROR):
        send_later(MESSAGE).result(timeout=10)
    assert "mail could not be sent: OSError" in caplog.text
    assert "mara" not in caplog.text
    assert "secret" not in caplog.text


def test_a_printed_link_can_be_copied() -> None:
    link = "http://127.0.0.1:8765/password/reset/MQ/" + "x" * 60 + "/"
    printed = Letter("A subject", f"Open this:\n\n{link}\n", to=["mara@example.org"]).message()
    assert link in printed.as_string()
