"""Frames are read with care."""

import json

import pytest

from accounts.errors import InvalidInput
from chatapp import frames

ID = "0b8a6c1e-4f3d-4d62-9a5e-6f1f3f1d2a10"


def test_every_action_is_understood() -> None:
    assert frames.parse(json.dumps({"type": "message", "text": "hi", "client_id": ID})) == (
        frames.SendMessage("hi", frames.UUID(ID))
    )
    assert frames.parse(json.dumps({"type": "attach", "reply": ID, "after": 3})) == (
        frames.Attach(frames.UUID(ID), 3)
    )
    assert frames.parse(json.dumps({"type": "stop", "reply": ID})) == frames.Stop(frames.UUID(ID))
    assert frames.parse(json.dumps({"type": "retry", "reply": ID})) == (
        frames.Retry(frames.UUID(ID), keep=False)
    )
    assert frames.parse('{"type": "ping"}') == frames.Ping()


NONSENSE: list[tuple[str | None, bytes | None]] = [
    (None, b"\x00\x01"),
    ("", None),
    ("{", None),
    ("[]", None),
    ("null", None),
    ("12", None),
    ('"text"', None),
    ("{}", None),
    ('{"type": 1}', None),
    ('{"type": "dance"}', None),
    ('{"type": "message"}', None),
    ('{"type": "message", "text": "x"}', None),
    (json.dumps({"type": "message", "text": 5, "client_id": ID}), None),
    (json.dumps({"type": "message", "text": "", "client_id": ID}), None),
    (json.dumps({"type": "message", "text": " \n\u200b", "client_id": ID}), None),
    (json.dumps({"type": "message", "text": "\x00", "client_id": ID}), None),
    (json.dumps({"type": "message", "text": "x", "client_id": "7"}), None),
    (json.dumps({"type": "message", "text": "x", "client_id": ["7"]}), None),
    (json.dumps({"type": "message", "text": "x" * 65_537, "client_id": ID}), None),
    (json.dumps({"type": "message", "text": "ü" * 32_769, "client_id": ID}), None),
    (json.dumps({"type": "attach", "reply": ID, "after": -1}), None),
    (json.dumps({"type": "attach", "reply": ID, "after": True}), None),
    (json.dumps({"type": "attach", "reply": ID, "after": 1.5}), None),
    (json.dumps({"type": "attach", "reply": ID, "after": 10**400}), None),
    (json.dumps({"type": "attach", "reply": "x" * 5000, "after": 0}), None),
    (json.dumps({"type": "stop", "reply": None}), None),
    (json.dumps({"type": "retry", "reply": ID, "keep": "yes"}), None),
    ("[" * 100_000, None),
    ('{"a":' * 50_000, None),
    (json.dumps({"type": "message", "text": "x" * 600_000, "client_id": ID}), None),
]


@pytest.mark.parametrize(("text", "content"), NONSENSE)
def test_nonsense_is_refused_with_a_sentence(text: str | None, content: bytes | None) -> None:
    with pytest.raises(InvalidInput) as refused:
        frames.parse(text, content)
    assert str(refused.value).endswith(".")


def test_sixty_four_kib_of_text_is_a_message() -> None:
    text = "ü" * 32_768
    action = frames.parse(json.dumps({"type": "message", "text": text, "client_id": ID}))
    assert action == frames.SendMessage(text, frames.UUID(ID))


def test_nul_and_half_an_emoji_are_mended() -> None:
    text = r"a\u0000b\ud83d c\ud83d\ude00"
    raw = f'{{"type": "message", "text": "{text}", "client_id": "{ID}"}}'
    assert frames.parse(raw) == frames.SendMessage("ab\ufffd c😀", frames.UUID(ID))


def test_an_error_names_the_message_that_failed() -> None:
    frame = json.loads(frames.error(InvalidInput(), ID))
    assert frame["client_id"] == ID
    assert frame["code"] == "invalid_input"
    assert frames.client_id_in('{"client_id": "x"}') == "x"
    assert frames.client_id_in('{"client_id": 5}') is None
    assert frames.client_id_in("nonsense") is None
    assert frames.client_id_in(r'{"client_id": "\ud800"}') is None
