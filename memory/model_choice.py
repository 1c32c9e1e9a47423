"""Which models are in force: what the operator chose on their page, else the environment."""

from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection, transaction
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput
from accounts.seal import seal, unseal
from accounts.text import one_line
from memory.model_server import Endpoint
from memory.models import ModelSettings

OPENAI = "https://api.openai.com/v1"
ADDRESS_CHARS = 300
MODEL_CHARS = 120
KEY_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class EmbeddingsChoice:
    """What makes embeddings: the local model, or an address that speaks OpenAI's protocol."""

    kind: str
    model: str
    base_url: str
    api_key: str = field(repr=False)

    @property
    def is_local(self) -> bool:
        return self.kind == ModelSettings.Embeddings.LOCAL


@dataclass(frozen=True, slots=True)
class Overview:
    """What the operator's page shows. Keys are told of, never shown."""

    base_url: str
    chat_model: str
    has_key: bool
    without: bool
    from_environment: bool
    embeddings: str
    embeddings_model: str
    embeddings_base_url: str
    embeddings_has_key: bool


class Refused(InvalidInput):
    """A field of the operator's form can't be used; `field` says which."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(message)
        self.field = where


def current_endpoint() -> Endpoint | None:
    """Return where replies come from, or None without a model. One query, nothing cached."""
    with connection.cursor() as cursor:
        cursor.execute(_CHAT_MODEL)
        row = cursor.fetchone()
    return _chosen(*row) if row else _chosen()


# Written out: it is read on the way to each reply's first word, where a model's object costs more
# than the query.
_CHAT_MODEL = """
select without_model, base_url, api_key_sealed, chat_model from memory_modelsettings where "only"
"""


def current_embeddings() -> EmbeddingsChoice:
    """Return what makes embeddings. One query, nothing cached."""
    return _embeddings(_row())


def overview() -> Overview:
    """Return what is in force, for the operator's eyes."""
    row = _row()
    endpoint = _endpoint(row)
    embeddings = _embeddings(row)
    ours = endpoint or Endpoint(row.base_url, unseal(row.api_key_sealed), row.chat_model)
    return Overview(
        base_url=ours.base_url,
        chat_model=endpoint.model if endpoint else "",
        has_key=bool(ours.api_key),
        without=row.without_model,
        from_environment=endpoint is not None and not row.chat_model,
        embeddings=embeddings.kind,
        embeddings_model=embeddings.model,
        embeddings_base_url=embeddings.base_url,
        embeddings_has_key=bool(embeddings.api_key),
    )


def key_for(base_url: str) -> str:
    """Return the key that is kept for this address; a key goes nowhere else than it was given for.

    Empty when there is none, or only one for another server.
    """
    row = _row()
    if row.api_key_sealed and same_server(row.base_url, base_url):
        return unseal(row.api_key_sealed)
    if same_server(settings.OPENAI_BASE_URL or OPENAI, base_url):
        return str(settings.OPENAI_API_KEY)
    return ""


def embeddings_key_for(base_url: str) -> str:
    """Return the key that is kept for embeddings from this address; empty for another server."""
    return _embeddings_key(_row(), base_url)


def _embeddings_key(row: ModelSettings, base_url: str) -> str:
    if row.embeddings_key_sealed and same_server(row.embeddings_base_url, base_url):
        return unseal(row.embeddings_key_sealed)
    if same_server(settings.EMBEDDINGS_BASE_URL or OPENAI, base_url):
        return str(settings.EMBEDDINGS_API_KEY)
    return ""


@transaction.atomic
def choose_model(
    *, base_url: str, chat_model: str, api_key: str = "", clear_key: bool = False
) -> None:
    """Let replies come from this model from now on.

    An empty key keeps the one that is there, if it was given for the same server. Raises Refused
    for the field that can't be used.
    """
    address = clean_address(base_url, where="base_url")
    model = one_line(chat_model)
    if not model:
        raise Refused("chat_model", _("Say which model shall answer."))
    if len(model) > MODEL_CHARS:
        raise Refused("chat_model", _("That is too long for the name of a model."))
    key = clean_key(api_key, where="api_key")
    row = _row(lock=True)
    if key:
        row.api_key_sealed = seal(key)
    elif clear_key or not same_server(row.base_url, address):
        row.api_key_sealed = ""
    row.base_url, row.chat_model, row.without_model = address, model, False
    row.save()


@transaction.atomic
def go_without() -> None:
    """Let replies show what is remembered, without a model, until one is chosen."""
    row = _row(lock=True)
    row.base_url = row.chat_model = row.api_key_sealed = ""
    row.without_model = True
    row.save()


# Until the next sweep has looked at what everybody's memories lack. The name alone would not tell:
# it may be the one that was in force before the last two changes, or no sweep had come yet.
CHANGED = "?"


@transaction.atomic
def choose_embeddings(*, kind: str, model: str, base_url: str, api_key: str = "") -> None:
    """Let embeddings be made so from now on; Refused for the field that can't be used."""
    if kind not in ModelSettings.Embeddings.values:
        raise Refused("embeddings", _("Choose one of the two."))
    name = one_line(model)
    if len(name) > MODEL_CHARS:
        raise Refused("embeddings_model", _("That is too long for the name of a model."))
    key = clean_key(api_key, where="embeddings_api_key")
    row = _row(lock=True)
    if kind == ModelSettings.Embeddings.LOCAL:
        row.embeddings_base_url = row.embeddings_key_sealed = ""
    else:
        address = clean_address(base_url, where="embeddings_base_url")
        if key:
            row.embeddings_key_sealed = seal(key)
        elif not same_server(row.embeddings_base_url, address):
            row.embeddings_key_sealed = ""
        row.embeddings_base_url = address
    row.embeddings, row.embeddings_model = kind, name
    if row.embedded_with not in {"", CHANGED}:
        row.embedded_before = row.embedded_with
    row.embedded_with = CHANGED
    row.save()


def clean_address(text: str, *, where: str) -> str:
    """Return the address without a slash at its end, OpenAI's own for none; Refused for nonsense.

    It may be a local one: the operator's machine is where local models live.
    """
    address = text.strip() or OPENAI
    try:
        parts = urlsplit(address)
        _port = parts.port  # raises for what is no port
    except ValueError:
        raise Refused(where, _("That is no address.")) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Refused(where, _("An address begins with http:// or https:// and a host."))
    if parts.username is not None or parts.password is not None:
        raise Refused(where, _("Leave the key out of the address; it has a field of its own."))
    if parts.query or parts.fragment or not address.isprintable() or " " in address:
        raise Refused(where, _("An address ends with its path, usually /v1."))
    if len(address) > ADDRESS_CHARS:
        raise Refused(where, _("That is too long for an address."))
    return address.rstrip("/")


def clean_key(text: str, *, where: str) -> str:
    """Return the key without white space around it; Refused for what no header can carry."""
    key = text.strip()
    if not key.isascii() or not key.isprintable() or " " in key or len(key) > KEY_CHARS:
        raise Refused(where, _("That is no key: it holds characters that no key has."))
    return key


def same_server(one: str, other: str) -> bool:
    """Tell whether two addresses lead to the same server: scheme, host and port."""
    return _server(one) == _server(other)


def _server(address: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return address, None, None
    return parts.scheme, parts.hostname, port


def _row(*, lock: bool = False) -> ModelSettings:
    """Return the operator's choice; an empty one where none was made."""
    if lock:
        return ModelSettings.objects.select_for_update().get_or_create(only=True)[0]
    with connection.cursor() as cursor:  # asked for each reply, page and job
        cursor.execute(_statement())
        row = cursor.fetchone()
    return ModelSettings.from_db(connection.alias, _names(), row) if row else ModelSettings()


@cache
def _names() -> list[str]:
    return [field.attname for field in ModelSettings._meta.concrete_fields]


@cache
def _statement() -> str:
    columns = ", ".join(f'"{field.column}"' for field in ModelSettings._meta.concrete_fields)
    return f'select {columns} from memory_modelsettings where "only"'  # noqa: S608 - our columns


def _embeddings(row: ModelSettings) -> EmbeddingsChoice:
    if row.embeddings:
        base_url = row.embeddings_base_url
        key = _embeddings_key(row, base_url) if base_url else ""
        return EmbeddingsChoice(row.embeddings, row.embeddings_model, base_url, key)
    return EmbeddingsChoice(
        settings.EMBEDDINGS,
        settings.EMBEDDINGS_MODEL,
        settings.EMBEDDINGS_BASE_URL,
        settings.EMBEDDINGS_API_KEY,
    )


def _endpoint(row: ModelSettings) -> Endpoint | None:
    return _chosen(row.without_model, row.base_url, row.api_key_sealed, row.chat_model)


def _chosen(
    without: bool = False, base_url: str = "", sealed: str = "", chat_model: str = ""
) -> Endpoint | None:
    if without:
        return None
    if chat_model:
        address = base_url or OPENAI
        key = unseal(sealed)
        if not key and same_server(settings.OPENAI_BASE_URL or OPENAI, address):
            key = settings.OPENAI_API_KEY
        return Endpoint(address, key, chat_model)
    if settings.CHAT_MODEL and (settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL):
        address = settings.OPENAI_BASE_URL or OPENAI
        return Endpoint(address, settings.OPENAI_API_KEY, settings.CHAT_MODEL)
    return None
