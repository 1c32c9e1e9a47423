"""Static files under names that change with their content, collected before the server starts.

A browser keeps such a file for ever, and a file that is edited, or pulled, under a running server
stays as it was until the next start. Where nothing was collected, as in most tests, files are
served from where they lie, under their plain names.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage


class Collected(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """The files in STATIC_ROOT, compressed; what a module imports is renamed in it as well."""

    support_js_module_import_aggregation = True
    # Each renames one more link of the longest chain of imports; Django's 5 would soon be short.
    max_post_process_passes = 20

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._addresses: dict[str, str] = {}

    def url(self, name: str, force: bool = False) -> str:
        """Return the file's address, which stays the same while the process runs."""
        if force:
            return str(super().url(name, force))
        if name not in self._addresses:
            self._addresses[name] = str(super().url(name))
        return self._addresses[name]

    def stored_name(self, name: str) -> str:
        """Return the name with the hash, or the plain one where nothing was collected."""
        return str(super().stored_name(name)) if self.hashed_files else name


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """Serves them. It knows each from the start, with its size, unless DEBUG is on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        super().__init__(get_response)
        # Browsers ask for it unasked, on pages without a head of ours.
        if icon := self.files.get(f"{self.static_prefix}favicon.ico"):
            self.files["/favicon.ico"] = icon

    def add_files(self, root: Path, prefix: str | None = None) -> None:
        """Take what lies in a folder; that there is none is no mistake, see above."""
        if Path(root).is_dir():
            super().add_files(root, prefix)
