"""Templates that fail where they name what their view does not give.

Django renders such a name as nothing, which no test sees. `strict()` makes it an error, wherever a
page or a part of one is rendered, unless the template's first line says that it may be missing:
names between the last `;` and "(optional)".
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest, QueryDict
from django.template.base import FilterExpression, Variable, VariableDoesNotExist
from django.template.context import Context

# Django's own, which it sets only where there is something to say, and sentences by field.
SAYS_NOTHING = {"csrf_token", "errors", "forloop", "messages", "user"}


class NotGiven(AssertionError):
    """A template names what its view does not give."""


@cache
def optional(name: str) -> frozenset[str]:
    """Return the names that a template's first line says may be missing."""
    path = next((Path(root) / name for root in settings.TEMPLATES[0]["DIRS"]), Path(name))
    if not path.is_file():
        return frozenset()
    first = path.read_text(encoding="utf-8").splitlines()[0]
    declared = re.search(r"context:.*;([^;]*)\(optional\)", first)
    return frozenset(re.findall(r"[a-z_]+", declared[1])) if declared else frozenset()


def _may_be_missing(variable: Variable, context: Context, *, lenient: bool) -> bool:
    parts = [str(part) for part in variable.lookups or ()]
    if parts[0] in SAYS_NOTHING:
        return True
    inner = context.render_context.template
    names = {one.name for one in (context.template, inner) if one and one.name}
    may_be = {word for name in names for word in optional(name)}
    if parts[0] not in context:
        return parts[0] in may_be
    if set(parts[1:]) & may_be:
        return True
    if not lenient:
        return False
    # A condition, and the name is there. Nothing at all, and what a browser sends, may be without
    # the part; a request that ended early has nobody.
    value = context[parts[0]]
    for part in parts[1:]:
        if value is None or value == "" or isinstance(value, HttpRequest | QueryDict):
            return True
        value = value.get(part) if isinstance(value, dict) else getattr(value, part, NotGiven)
    return False


@contextmanager
def strict() -> Iterator[None]:
    """Raise NotGiven where a template names what is not there."""
    variable_resolve, resolve = Variable.resolve, FilterExpression.resolve
    failed: list[tuple[Any, Any]] = []

    def noted(self: Any, context: Any) -> Any:
        try:
            return variable_resolve(self, context)
        except VariableDoesNotExist:
            failed.append((self, context))
            raise

    def checked(self: Any, context: Any, ignore_failures: bool = False) -> Any:
        before = len(failed)
        try:
            return resolve(self, context, ignore_failures)
        finally:
            missing = [one for one in failed[before:] if one[0] is self.var]
            del failed[before:]
            lenient = ignore_failures or any(
                function.__name__ in {"default", "default_if_none"}
                for function, _arguments in self.filters
            )
            for variable, where in missing:
                if not _may_be_missing(variable, where, lenient=lenient):
                    template = where.template.name if where.template else "a template"
                    raise NotGiven(f"{template} names {variable.var!r}, which it is not given")

    Variable.resolve = noted  # type: ignore[method-assign]
    FilterExpression.resolve = checked  # type: ignore[method-assign]
    try:
        yield
    finally:
        Variable.resolve = variable_resolve  # type: ignore[method-assign]
        FilterExpression.resolve = resolve  # type: ignore[method-assign]
