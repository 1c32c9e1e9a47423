from django.db import migrations

from accounts.owned import owner_key, same_owner, walled

OWNED = (
    "memory",
    "memoryversion",
    "searchkey",
    "usage",
    "recalled",
    "memorysettings",
    "tombstone",
    "job",
)
CHILDREN = ("memoryversion", "searchkey", "usage", "recalled")


class Migration(migrations.Migration):
    """Each person's rows behind the wall; children belong to their parent's owner."""

    dependencies = [("memory", "0001_initial"), ("accounts", "0002_walls")]
    operations = [
        *(walled(f"memory_{table}") for table in OWNED),
        owner_key("memory_memory"),
        *(same_owner(f"memory_{table}", "memory_id", "memory_memory") for table in CHILDREN),
        same_owner("memory_memory", "superseded_by_id", "memory_memory"),
        # Exact search reads this index alone. An index row holds 2,704 bytes: 1,024 dimensions fit.
        migrations.RunSQL(
            "create index search_key_covering on memory_searchkey (tenant_id, user_id, model, dims)"
            ' include (memory_id, "position", speaker, embedding) where dims <= 1024',
            "drop index search_key_covering",
        ),
    ]
