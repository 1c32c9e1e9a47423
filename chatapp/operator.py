"""The operator's page: which models are in force, what runs here, and whether it works."""

import logging
import time
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.door import UserRequest
from accounts.door import operator as operators_only
from accounts.errors import InvalidInput, ProviderError
from accounts.web import SeeOther
from memory import embedder
from memory.discovery import HOSTS, PORTS, find_servers
from memory.model_choice import (
    Refused,
    choose_embeddings,
    choose_model,
    clean_address,
    clean_key,
    embeddings_key_for,
    go_without,
    key_for,
    overview,
)
from memory.model_list import list_models
from memory.model_server import Endpoint
from memory.models import ModelSettings
from memory.remote_vectors import embed_remote
from memory.standing import standing

logger = logging.getLogger(__name__)

PAGE = "operator/operator.html"
PATIENCE = 10.0  # seconds that a test may take
# What is shown again after a refusal; a key never is.
SHOWN_AGAIN = (
    "base_url",
    "chat_model",
    "embeddings",
    "embeddings_model",
    "embeddings_base_url",
)


@sensitive_post_parameters("api_key", "embeddings_api_key")
@operators_only
@require_http_methods(["GET", "POST"])
def operator(request: UserRequest) -> HttpResponseBase:
    """Show which models are in force; take others."""
    if request.method == "GET":
        return render(request, PAGE, _page(saved="saved" in request.GET))
    try:
        _take(request)
    except Refused as error:
        page = _page(request, errors={error.field: str(error)})
        return render(request, PAGE, page, status=400)
    logger.info("models changed by user %s: %s", request.user.pk, request.POST.get("action"))
    return SeeOther(f"{reverse('operator')}?saved")


def _page(request: HttpRequest | None = None, **more: Any) -> dict[str, Any]:
    """Return what the page shows: what is in force, under what was just typed."""
    current = overview()
    model = {name: getattr(current, name) for name in current.__slots__}
    if request is not None:
        typed = {name: request.POST[name] for name in SHOWN_AGAIN if name in request.POST}
        model |= typed
    return _embedding() | {
        "model": model,
        "from_environment": current.from_environment,
        "errors": {},
        **more,
    }


def _embedding() -> dict[str, Any]:
    return {"standing": standing(), "again": reverse("operator_embedding")}


@operators_only
@require_GET
def operator_embedding(request: UserRequest) -> HttpResponseBase:
    """Show how far all memories are found by meaning; a page asks for it again and again."""
    if request.headers.get("HX-Request"):
        return render(request, "memory/embedding.html", _embedding())
    return SeeOther(reverse("operator"))


@sensitive_variables()
def _take(request: HttpRequest) -> None:
    """Do what the form asks; Refused says which field can't be used, and why."""
    posted = request.POST
    match posted.get("action"):
        case "save":
            choose_model(
                base_url=posted.get("base_url", ""),
                chat_model=posted.get("chat_model", ""),
                api_key=posted.get("api_key", ""),
                clear_key="clear_key" in posted,
            )
        case "use":  # one that was found on this machine: it has no key, and gets none
            choose_model(
                base_url=posted.get("base_url", ""),
                chat_model=posted.get("chat_model", ""),
                clear_key=True,
            )
        case "without":
            go_without()
        case "embeddings":
            _take_embeddings(
                kind=posted.get("embeddings", ""),
                model=posted.get("embeddings_model", ""),
                base_url=posted.get("embeddings_base_url", ""),
                api_key=posted.get("embeddings_api_key", ""),
            )
        case _:
            raise InvalidInput


@sensitive_variables()
def _take_embeddings(*, kind: str, model: str, base_url: str, api_key: str) -> None:
    """Keep the choice, once an address has proved that it makes embeddings."""
    if kind == ModelSettings.Embeddings.OPENAI:
        address = clean_address(base_url, where="embeddings_base_url")
        key = clean_key(api_key, where="embeddings_api_key") or embeddings_key_for(address)
        if not model.strip():
            raise Refused("embeddings_model", _("Say which model makes the embeddings."))
        try:
            embed_remote(Endpoint(address, key, model.strip()), ["A test."], timeout=PATIENCE)
        except ProviderError as error:
            raise Refused(
                "embeddings", _("Nothing was changed. %(why)s") % {"why": error}
            ) from None
    elif kind == ModelSettings.Embeddings.LOCAL:
        model = ""  # the one that came with Recollect; the field still names the server's
    choose_embeddings(kind=kind, model=model, base_url=base_url, api_key=api_key)
    embedder.follow()  # this process at once, the others within seconds


@operators_only
@require_GET
def operator_discover(request: UserRequest) -> HttpResponseBase:
    """Show the model servers that run on this machine, each with a button that chooses it."""
    found: dict[str, Any] = {
        "servers": find_servers(),
        "looked": [f"{host}:{port}" for host in HOSTS[:1] for port in PORTS],
    }
    if request.headers.get("HX-Request"):
        return render(request, "operator/discovered.html", found)
    return render(request, PAGE, _page(**found))


@sensitive_post_parameters("api_key")
@operators_only
@require_POST
def operator_test(request: UserRequest) -> HttpResponseBase:
    """Ask the address in the form for its models, keep nothing, and say how it went."""
    result = _test(request)
    status = 200 if result["ok"] else 400
    if request.headers.get("HX-Request"):
        return render(request, "operator/test.html", result, status=status)
    return render(request, PAGE, _page(request, tested=True, **result), status=status)


@sensitive_variables()
def _test(request: HttpRequest) -> dict[str, Any]:
    posted = request.POST
    wanted = posted.get("chat_model", "").strip()
    began = time.monotonic()
    try:
        address = clean_address(posted.get("base_url", ""), where="base_url")
        key = clean_key(posted.get("api_key", ""), where="api_key")
        if not key and "clear_key" not in posted:
            key = key_for(address)
        models = list_models(address, key, timeout=PATIENCE)
    except (Refused, ProviderError) as error:
        return {"ok": False, "sentence": str(error), "models": [], "ms": None}
    took = round((time.monotonic() - began) * 1000)
    if wanted and wanted not in models:
        sentence = _("It answers, but it has no model of the name %(name)s.") % {"name": wanted}
        return {"ok": False, "sentence": sentence, "models": models, "ms": took}
    if not models:
        sentence = _("It answers, but it has no model yet.")
        return {"ok": False, "sentence": sentence, "models": [], "ms": took}
    return {"ok": True, "sentence": _("It answers."), "models": models, "ms": took}
