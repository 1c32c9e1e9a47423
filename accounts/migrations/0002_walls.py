from django.db import migrations

TENANT = "tenant_id = (select nullif(current_setting('app.tenant_id', true), '')::bigint)"
USER = "user_id = (select nullif(current_setting('app.user_id', true), '')::bigint)"


class Migration(migrations.Migration):
    """Memberships show to the person and inside the tenant; the audit is only added to."""

    dependencies = [("accounts", "0001_initial")]
    operations = [
        migrations.RunSQL(
            [
                "alter table accounts_membership enable row level security",
                "alter table accounts_membership force row level security",
                "create policy app on accounts_membership to recollect_app"
                f" using ({TENANT} or {USER}) with check ({TENANT} or {USER})",
                "create policy review on accounts_membership for select to recollect_review"
                f" using ({TENANT})",
                "grant select on accounts_membership, accounts_user, accounts_tenant"
                " to recollect_review",
                "alter table accounts_auditentry enable row level security",
                "alter table accounts_auditentry force row level security",
                f"create policy reads on accounts_auditentry for select to recollect_app"
                f" using ({TENANT})",
                f"create policy adds on accounts_auditentry for insert to recollect_app"
                f" with check ({TENANT} or tenant_id is null)",
                "revoke update, delete on accounts_auditentry from recollect_app",
            ],
            [
                "drop policy app on accounts_membership",
                "drop policy review on accounts_membership",
                "alter table accounts_membership no force row level security",
                "alter table accounts_membership disable row level security",
                "revoke select on accounts_membership, accounts_user, accounts_tenant"
                " from recollect_review",
                "drop policy reads on accounts_auditentry",
                "drop policy adds on accounts_auditentry",
                "alter table accounts_auditentry no force row level security",
                "alter table accounts_auditentry disable row level security",
                "grant update, delete on accounts_auditentry to recollect_app",
            ],
        )
    ]
