"""Static files: collected under names that change with their content, or as they lie."""

import gzip
import re
import shutil
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as given
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from django.http import HttpResponse
from django.template import engines
from django.test import RequestFactory

from chatapp.assets import StaticFiles

SOURCE = Path(given.BASE_DIR) / "static"
FOR_EVER = "max-age=315360000, public, immutable"


@pytest.fixture
def source(tmp_path: Path, settings: Any) -> Path:
    """A copy of the static files, which a test may edit, and an empty folder to collect into."""
    copied = Path(shutil.copytree(SOURCE, tmp_path / "source"))
    settings.STATICFILES_DIRS = [copied]
    settings.STATIC_ROOT = tmp_path / "collected"
    settings.WHITENOISE_USE_FINDERS = True
    return copied


@pytest.fixture
def collected(source: Path, settings: Any) -> Path:
    """The folder into which the files were collected, as script/server does it."""
    call_command("collectstatic", clear=True, interactive=False, verbosity=0)
    settings.WHITENOISE_USE_FINDERS = False
    staticfiles_storage._wrapped = staticfiles_storage._wrapped.__class__()
    return Path(settings.STATIC_ROOT)


def middleware() -> StaticFiles:
    return StaticFiles(lambda request: HttpResponse(status=404))


def get(served: StaticFiles, path: str, **headers: str) -> tuple[Mapping[str, str], bytes]:
    """The headers and the content with which a path is answered."""
    response = served(RequestFactory(headers=headers).get(path))
    assert response.status_code == HTTPStatus.OK
    content = b"".join(response.streaming_content)
    for closer in response._resource_closers:  # not close(): that ends a request of Django's
        closer()
    return response.headers, content


def test_a_collected_file_has_a_name_of_its_content_and_is_kept_for_ever(collected: Path) -> None:
    url = engines["django"].from_string("{% load static %}{% static 'css/base.css' %}").render()
    assert re.fullmatch(r"/static/css/base\.[0-9a-f]{12}\.css", url)
    served = middleware()
    headers, content = get(served, url)
    assert headers["Cache-Control"] == FOR_EVER
    assert content == (SOURCE / "css" / "base.css").read_bytes()
    headers, packed = get(served, url, accept_encoding="gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed) == content
    headers, _ = get(served, "/static/css/base.css")
    assert "immutable" not in headers["Cache-Control"]


def test_every_module_imports_the_very_files_that_the_pages_name(collected: Path) -> None:
    imports = re.compile(r'^import [^;]+? from "\./([^"]+)";', re.MULTILINE)
    modules = sorted(path.name for path in (SOURCE / "js").glob("*.js"))
    for name in modules:
        before = imports.findall((SOURCE / "js" / name).read_text())
        stored = collected / staticfiles_storage.stored_name(f"js/{name}")
        after = imports.findall(stored.read_text())
        named = [staticfiles_storage.stored_name(f"js/{target}") for target in before]
        assert [f"js/{target}" for target in after] == named, name
    assert modules


def test_a_module_gets_a_new_name_when_what_it_imports_changes(
    source: Path, collected: Path, settings: Any
) -> None:
    before = staticfiles_storage.stored_name("js/app.js")
    (source / "js" / "dom.js").write_text((source / "js" / "dom.js").read_text() + "\n// more\n")
    call_command("collectstatic", clear=True, interactive=False, verbosity=0)
    assert staticfiles_storage.stored_name("js/app.js") != before


def test_a_file_that_is_edited_meanwhile_is_served_whole_as_it_was(
    source: Path, collected: Path
) -> None:
    served = middleware()
    whole = (source / "js" / "dom.js").read_bytes()
    (source / "js" / "dom.js").write_bytes(whole * 2)
    for url in (staticfiles_storage.url("js/dom.js"), "/static/js/dom.js"):
        headers, content = get(served, url)
        assert int(headers["Content-Length"]) == len(content)
    assert content == whole


def test_where_nothing_was_collected_files_are_served_from_where_they_lie(source: Path) -> None:
    assert staticfiles_storage.url("js/app.js") == "/static/js/app.js"
    _, content = get(middleware(), "/static/js/app.js")
    assert content == (source / "js" / "app.js").read_bytes()


def test_the_site_manifest_says_what_it_is(collected: Path) -> None:
    for url in ("/static/manifest.webmanifest", staticfiles_storage.url("manifest.webmanifest")):
        headers, content = get(middleware(), url)
        assert headers["Content-Type"].partition(";")[0] == "application/manifest+json"
        assert content == (SOURCE / "manifest.webmanifest").read_bytes()


def test_the_icon_that_browsers_ask_for_is_there(collected: Path) -> None:
    headers, content = get(middleware(), "/favicon.ico")
    assert content == (SOURCE / "favicon.ico").read_bytes()
    assert "immutable" not in headers["Cache-Control"]
