"""Whole answers of the language model, for workers: a value that fits a schema."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.errors import Rejected
from memory import refusals
from memory.json_answer import asking_for_json, is_strict, json_in, misfit
from memory.llm import Finish, Message, finish_of, trouble_shown
from memory.model_server import ATTEMPTS, Client, Endpoint, Failed, fetched, waited
from memory.wire import ReplyReader

ANSWER_BYTES = 200_000


class Form(Enum):
    """How a server is told that JSON is wanted; each asks less of it than the one before."""

    SCHEMA = "json_schema"
    OBJECT = "json_object"
    WORDS = "words"


_forms: dict[tuple[str, str], Form] = {}  # what each endpoint was found to understand


def complete_json(
    endpoint: Endpoint,
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    *,
    timeout: float = 120,
    name: str = "answer",
    accepts: Mapping[str, Any] | None = None,
) -> Any:
    """Return a value that fits the JSON schema; for code without an event loop.

    `accepts` is a schema that asks less, for a caller that checks each part by itself.

    A server that does not know JSON schemas is asked for a JSON object, then in words. Raises
    Rejected when no usable value came, other ProviderErrors as `stream` does.
    """

    async def ask(client: Client, refused: Form | None = None) -> Any:
        place = endpoint.base_url, endpoint.model
        known = _forms.get(place)
        away: Failed | None = None
        forms = [known] if known else [one for one in Form if one is not refused]
        for form in forms:
            last = form is forms[-1]
            # A server may answer 500 to a form that it does not know: then on to the next.
            attempts = ATTEMPTS if last else 1
            wanted = _wanted(form, messages, schema, name)
            try:
                answer = await _answer(client, endpoint, wanted, attempts=attempts)
                value = _fitting(answer, accepts or schema)
            except Failed as failed:
                unusable = failed.error.code == "provider_unusable"
                # Another version of the server, or another one at its address, may know others.
                if known and (unusable or failed.may_be_a_parameter):
                    _forms.pop(place, None)
                if known and failed.may_be_a_parameter:
                    return await ask(client, refused=known)
                if (failed.status or 0) >= 500:
                    away = failed
                if last and unusable and away:
                    # It had no chance to show which form it knows: to be asked again, and not for
                    # good the server whose answers are of no use.
                    raise away from None
                if last or not (unusable or failed.may_be_a_parameter or away is failed):
                    raise
            else:
                _forms[place] = form
                return value
        raise AssertionError("the last form returns or raises")

    return waited(endpoint.base_url, endpoint.api_key, timeout, ask)


def _wanted(
    form: Form, messages: Sequence[Message], schema: Mapping[str, Any], name: str
) -> dict[str, Any]:
    if form is Form.SCHEMA:
        described = {"name": name, "schema": schema, "strict": is_strict(schema)}
        return {
            "messages": list(messages),
            "response_format": {"type": "json_schema", "json_schema": described},
        }
    told: dict[str, Any] = {"messages": asking_for_json(messages, schema)}
    if form is Form.OBJECT:
        told["response_format"] = {"type": "json_object"}
    return told


def _fitting(answer: str, schema: Mapping[str, Any]) -> Any:
    try:
        value = json_in(answer, schema)
    except ValueError:
        raise Failed(refusals.unusable(_("The model's answer holds no JSON."))) from None
    reason = misfit(value, schema)
    if reason:
        sentence = _("The model's answer has the wrong shape: {reason}.")
        raise Failed(refusals.unusable(format_lazy(sentence, reason=reason)))
    return value


async def _answer(
    client: Client,
    endpoint: Endpoint,
    wanted: Mapping[str, Any],
    *,
    attempts: int = ATTEMPTS,
) -> str:
    """Return the text of a whole completion."""
    body = {"model": endpoint.model, **wanted}
    most = 4 * ANSWER_BYTES
    reader = ReplyReader()
    reader.whole(await fetched(client, "/chat/completions", body, most=most, attempts=attempts))
    text = reader.take()
    named = trouble_shown(reader)
    if named:
        raise Failed(named)
    if len(text.encode()) > ANSWER_BYTES:
        raise Failed(refusals.unusable(_("The model's answer is too long.")))
    finish = finish_of(reader)
    if finish is not Finish.COMPLETE:
        sentence = _("The model's answer is not whole: {finish}.")
        raise Failed(
            Rejected(format_lazy(sentence, finish=finish.value), code=f"provider_{finish.value}")
        )
    if not text:
        raise Failed(refusals.unusable(_("The model's answer is empty.")))
    return text
