"""Insert a memory in one message, once."""

from functools import cache
from typing import Any

from django.db import connection

from memory.models import Memory


def insert(memory: Memory) -> bool:
    """Store a new memory, inside its scope; False if the same exchange or claim is there already.

    The statement is the same each time: making it anew, as Django does, costs more than running it.
    """
    with connection.cursor() as cursor:
        cursor.execute(insertion(), columns_of(memory))
        memory._state.adding = not cursor.rowcount
        return bool(cursor.rowcount)


@cache
def insertion(unless: str = "") -> str:
    """Return what stores a memory, its values named as in `columns_of`, where `unless` is false."""
    columns = [str(field.column) for field in Memory._meta.concrete_fields]
    given = ", ".join(f"%(new_{column})s" for column in columns)
    where = f" where not {unless}" if unless else ""
    return (
        f"insert into memory_memory ({', '.join(columns)}) select {given}{where}"
        " on conflict do nothing"
    )


def columns_of(memory: Memory) -> dict[str, Any]:
    """Return a memory's values, as `insertion` names them."""
    return {
        f"new_{field.column}": field.get_db_prep_save(getattr(memory, field.attname), connection)
        for field in Memory._meta.concrete_fields
    }
