from django.db import migrations

TENANT = "tenant_id = (select nullif(current_setting('app.tenant_id', true), '')::bigint)"
USER = "user_id = (select nullif(current_setting('app.user_id', true), '')::bigint)"


def belongs(table: str) -> migrations.RunSQL:
    """Return the step that shows a table's rows to the person and inside the tenant."""
    return migrations.RunSQL(
        [
            f"alter table {table} enable row level security",
            f"alter table {table} force row level security",
            f"create policy app on {table} to recollect_app"
            f" using ({TENANT} or {USER}) with check ({TENANT} or {USER})",
            f"create policy review on {table} for select to recollect_review using ({TENANT})",
            f"grant select on {table} to recollect_review",
        ],
        [
            f"drop policy app on {table}",
            f"drop policy review on {table}",
            f"alter table {table} no force row level security",
            f"alter table {table} disable row level security",
            f"revoke select on {table} from recollect_review",  # noqa: S608 - a table's name of ours
        ],
    )


class Migration(migrations.Migration):
    """Memberships show to the person and inside the tenant; the audit is only added to."""

    dependencies = [("accounts", "0001_initial")]
    operations = [
        *(belongs(table) for table in ("accounts_membership", "accounts_departure")),
        migrations.RunSQL(
            [
                "grant select on accounts_user, accounts_tenant to recollect_review",
                "alter table accounts_auditentry enable row level security",
                "alter table accounts_auditentry force row level security",
                f"create policy reads on accounts_auditentry for select to recollect_app"
                f" using ({TENANT})",
                f"create policy adds on accounts_auditentry for insert to recollect_app"
                f" with check ({TENANT} or tenant_id is null)",
                "revoke update, delete on accounts_auditentry from recollect_app",
            ],
            [
                "revoke select on accounts_user, accounts_tenant from recollect_review",
                "drop policy reads on accounts_auditentry",
                "drop policy adds on accounts_auditentry",
                "alter table accounts_auditentry no force row level security",
                "alter table accounts_auditentry disable row level security",
                "grant update, delete on accounts_auditentry to recollect_app",
            ],
        ),
    ]
