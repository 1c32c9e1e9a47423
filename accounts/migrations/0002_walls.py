from django.db import migrations

from accounts.owned import TENANT, walled_by_either


class Migration(migrations.Migration):
    """Memberships show to the person and inside the tenant; the audit is only added to."""

    dependencies = [("accounts", "0001_initial")]
    operations = [
        *(walled_by_either(table) for table in ("accounts_membership", "accounts_departure")),
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
