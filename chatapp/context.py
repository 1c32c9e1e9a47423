"""What the shell of every page shows."""

from typing import Any

from django.http import HttpRequest


def shell(request: HttpRequest) -> dict[str, Any]:
    """Return the theme and, inside a tenant, who else one can be and what is remembered."""
    user = getattr(request, "user", None)
    theme = getattr(user, "theme", None) or request.COOKIES.get("theme", "system")
    return {"theme": theme if theme in {"light", "dark"} else "system"}
