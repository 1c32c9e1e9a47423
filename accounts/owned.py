"""Rows that belong to one person in one tenant, and the one door to them."""

from typing import Any

from django.db import models
from django.db.migrations.operations import RunSQL

from accounts.scope import Scope


class Owned[Q: models.QuerySet[Any]]:
    """The one door to owned rows: it opens only for a named scope."""

    def __init__(self, rows: type[Q]) -> None:
        self.rows = rows

    def __set_name__(self, model: type[models.Model], name: str) -> None:
        self.model = model

    def within(self, scope: Scope) -> Q:
        """Return the rows of this scope. Evaluate them inside `entered(scope)`."""
        return self.rows(self.model).filter(tenant_id=scope.tenant_id, user_id=scope.user_id)


class OwnedModel(models.Model):
    """A row of one person in one tenant; a subclass gives `objects = Owned(ItsQuerySet)`.

    `unscoped` is for Django's internals alone (a house-rule test bans it elsewhere).
    """

    # No indexes of one column: each table has its own on (tenant, user, ...), and the planner would
    # take these in their place while its statistics are young.
    tenant = models.ForeignKey(
        "accounts.Tenant", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    user = models.ForeignKey(
        "accounts.User", on_delete=models.CASCADE, related_name="+", db_index=False
    )

    unscoped = models.Manager["OwnedModel"]()

    class Meta:
        abstract = True
        base_manager_name = default_manager_name = "unscoped"

    @property
    def scope(self) -> Scope:
        """Whose row this is."""
        return Scope(self.tenant_id, self.user_id)


TENANT = "tenant_id = (select nullif(current_setting('app.tenant_id', true), '')::bigint)"
USER = "user_id = (select nullif(current_setting('app.user_id', true), '')::bigint)"


def walled(table: str) -> RunSQL:
    """Return the migration step that shows a table's rows to their owner and reviewers only."""
    return _walled(table, f"{TENANT} and {USER}")


def walled_by_tenant(table: str) -> RunSQL:
    """Return the step that shows a table's rows inside their tenant: settings, no person's rows."""
    return _walled(table, TENANT)


def walled_by_either(table: str) -> RunSQL:
    """Return the step that shows a table's rows to their person, and inside their tenant."""
    return _walled(table, f"{TENANT} or {USER}")


def _walled(table: str, condition: str) -> RunSQL:
    return RunSQL(
        [
            f"alter table {table} enable row level security",
            f"alter table {table} force row level security",
            f"create policy app on {table} to recollect_app"
            f" using ({condition}) with check ({condition})",
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


def owner_key(table: str) -> RunSQL:
    """Return the step that lets children point at (tenant, user, id), not at an id alone."""
    name = f"{table}_owner_key"
    return RunSQL(
        f"alter table {table} add constraint {name} unique (tenant_id, user_id, id)",
        f"alter table {table} drop constraint {name}",
    )


def same_owner(table: str, column: str, parent: str) -> RunSQL:
    """Return the step that makes a child's parent belong to the same person.

    Foreign keys pass by row level security; this one carries tenant and user. It also needs
    `owner_key(parent)`. Deleting is Django's: it removes the children first.
    """
    name = f"{table}_{column}_owner"
    return RunSQL(
        f"alter table {table} add constraint {name} foreign key (tenant_id, user_id, {column})"
        f" references {parent} (tenant_id, user_id, id) deferrable initially deferred",
        f"alter table {table} drop constraint {name}",
    )
