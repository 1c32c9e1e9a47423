from django.db import migrations


class Migration(migrations.Migration):
    """First of all migrations, so that every later table is open to the application's role."""

    run_before = [
        ("contenttypes", "0001_initial"),
        ("auth", "0001_initial"),
        ("sessions", "0001_initial"),
    ]
    operations = [
        migrations.RunSQL(
            [
                "alter default privileges in schema public"
                " grant select, insert, update, delete on tables to recollect_app",
                "grant select on django_migrations to recollect_app",
                "grant usage on schema public to recollect_app, recollect_review",
            ],
            [
                "alter default privileges in schema public"
                " revoke select, insert, update, delete on tables from recollect_app",
                "revoke select on django_migrations from recollect_app",
            ],
        )
    ]
