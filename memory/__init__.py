"""What is remembered of a person. `import memory`, then one line each, whose it is first.

    memory.remember(scope, text="I am vegetarian.")
    memory.recall(scope, "What do I eat?").memories
    memory.forget(scope, memory=id)

The functions are those of memory/face.py, with their docstrings; docs/python.md shows each. They
are loaded when first used, so that this can be imported before Django's apps are ready.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # those whose name no module has; the others are modules to a type checker
    from memory.face import empty_trash as empty_trash
    from memory.face import expire as expire
    from memory.face import forget as forget
    from memory.face import keep_to as keep_to
    from memory.face import list as list
    from memory.face import pin as pin
    from memory.face import preview as preview
    from memory.face import restore as restore
    from memory.face import tag as tag
    from memory.face import undo as undo
    from memory.face import unpin as unpin
    from memory.face import versions as versions

_VERBS = frozenset(
    {
        *("remember", "recall", "search", "list", "edit", "forget", "restore", "undo", "versions"),
        *("pin", "unpin", "tag", "expire", "keep_to", "empty_trash", "preview", "purge"),
    }
)


# Those that share their name with the module that they live in: one object is both.
_MODULES = frozenset({"edit", "purge", "recall", "remember", "search"})


def _verb(name: str) -> Any:
    return getattr(import_module("memory.face"), name)


class _CallableModule(ModuleType):
    """A module with a verb's name: `memory.recall(...)`, and `from memory.recall import recall`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _verb(self.__name__.rpartition(".")[2])(*args, **kwargs)

    @property
    def __wrapped__(self) -> Any:
        """What help() and signatures are about."""
        return _verb(self.__name__.rpartition(".")[2])


class _Package(ModuleType):
    """This package: where Python puts a submodule whose name is a verb's, it can be called."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _MODULES and type(value) is ModuleType:
            value.__class__ = _CallableModule
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in _VERBS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"memory.{name}") if name in _MODULES else _verb(name)

    def __dir__(self) -> Any:
        return sorted({*super().__dir__(), *_VERBS})


sys.modules[__name__].__class__ = _Package
