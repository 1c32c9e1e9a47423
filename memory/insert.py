"""Insert a memory in one message, once."""

from functools import cache

from django.db import connection

from memory.models import Memory


def insert(memory: Memory) -> bool:
    """Store a new memory, inside its scope; False if the same exchange or claim is there already.

    The statement is the same each time: making it anew, as Django does, costs more than running it.
    """
    values = [
        field.get_db_prep_save(getattr(memory, field.attname), connection)
        for field in Memory._meta.concrete_fields
    ]
    with connection.cursor() as cursor:
        cursor.execute(_statement(), values)
        memory._state.adding = not cursor.rowcount
        return bool(cursor.rowcount)


@cache
def _statement() -> str:
    columns = [str(field.column) for field in Memory._meta.concrete_fields]
    places = ", ".join(["%s"] * len(columns))
    return (
        f"insert into memory_memory ({', '.join(columns)}) values ({places})"  # noqa: S608 - ours
        " on conflict do nothing"
    )
