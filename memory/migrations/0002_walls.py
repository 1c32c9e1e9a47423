from django.db import migrations

from accounts.owned import owner_key, same_owner, walled, walled_by_tenant

OWNED = (
    "memory",
    "memoryversion",
    "searchrow",
    "searchkey",
    "posting",
    "searchtotals",
    "usage",
    "recalled",
    "memorysettings",
    "profile",
    "tombstone",
    "job",
)
CHILDREN = ("memoryversion", "searchrow", "searchkey", "usage", "recalled")
# Search and the counts of the list read indexes alone, and so need the visibility map to be young
# (the default waits until a fifth of the table is new).
# One person has one tenant, mostly: without being told so the planner takes their rows for a few,
# and reads them by the wrong index.
READ_FROM_INDEXES = ("memory", "searchrow", "searchkey", "posting")


class Migration(migrations.Migration):
    """Each person's rows behind the wall; children belong to their parent's owner."""

    dependencies = [("memory", "0001_initial"), ("accounts", "0002_walls")]
    operations = [
        *(walled(f"memory_{table}") for table in OWNED),
        walled_by_tenant("memory_tenantmemorysettings"),
        owner_key("memory_memory"),
        *(same_owner(f"memory_{table}", "memory_id", "memory_memory") for table in CHILDREN),
        same_owner("memory_memory", "superseded_by_id", "memory_memory"),
        # An index row holds 2,704 bytes: 1,024 dimensions fit. Wider vectors lie in the table.
        migrations.RunSQL(
            "create index search_key_covering on memory_searchkey"
            " (tenant_id, user_id, model, dims, place) include (embedding) where dims <= 1024",
            "drop index search_key_covering",
        ),
        migrations.RunSQL(
            [
                "alter table memory_posting drop constraint memory_posting_pkey",
                "alter table memory_posting add primary key (tenant_id, user_id, term, place)"
                " include (tf, dl)",
            ],
            [
                "alter table memory_posting drop constraint memory_posting_pkey",
                "alter table memory_posting add primary key (tenant_id, user_id, term, place)",
            ],
        ),
        *(
            migrations.RunSQL(
                f"alter table memory_{table} set (autovacuum_vacuum_insert_scale_factor = 0.02,"
                " autovacuum_vacuum_scale_factor = 0.05)",
                f"alter table memory_{table} reset (autovacuum_vacuum_insert_scale_factor,"
                " autovacuum_vacuum_scale_factor)",
            )
            for table in READ_FROM_INDEXES
        ),
        *(
            migrations.RunSQL(
                f"create statistics memory_{table}_owner (ndistinct, dependencies)"
                f" on tenant_id, user_id from memory_{table}",
                f"drop statistics memory_{table}_owner",
            )
            for table in READ_FROM_INDEXES
        ),
    ]
