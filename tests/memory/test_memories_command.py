"""`manage.py memories`: one person, one tenant, each use in the audit, a purge only when sure."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

import memory
from accounts.models import AuditEntry, Tenant, User
from accounts.scope import Scope, entered_tenant

pytestmark = pytest.mark.django_db


def run(scope: Scope, *words: str) -> str:
    tenant = Tenant.objects.get(pk=scope.tenant_id)
    user = User.objects.get(pk=scope.user_id)
    out = StringIO()
    call_command(
        "memories", *words, f"--person={user.email}", f"--tenant={tenant.slug}", stdout=out
    )
    return out.getvalue()


def audited(scope: Scope) -> list[tuple[str, int | None, dict[str, int], str]]:
    with entered_tenant(scope.tenant_id):
        rows = AuditEntry.objects.filter(tenant_id=scope.tenant_id).order_by("pk")
        return list(rows.values_list("action", "subject_id", "counts", "reason"))


def test_a_note_is_kept_listed_found_and_forgotten(mara: Scope, bob: Scope) -> None:
    memory.remember(bob, text="Bob's secret boat.")
    kept = run(mara, "remember", "I own a boat.")
    assert "current" in kept
    assert "I own a boat." in run(mara, "list")
    assert "I own a boat." in run(mara, "search", "boat")
    assert "secret" not in run(mara, "search", "boat")
    run(mara, "forget", kept.split()[0])
    assert "0 shown." in run(mara, "list")
    assert "I own a boat." in run(mara, "list", "--state=trash")
    actions = [action for action, subject, _counts, _reason in audited(mara) if subject]
    assert actions[-7:] == [
        *("memories.added", "memories.read", "memories.read", "memories.read"),
        *("memories.forgotten", "memories.read", "memories.read"),
    ]
    assert "boat" not in str(audited(mara))


def test_a_purge_shows_the_counts_and_asks(mara: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.remember(mara, text="I own a boat.")
    for answer in ("", "yes", "bob@example.org"):
        monkeypatch.setattr("builtins.input", lambda answer=answer: answer)
        with pytest.raises(CommandError, match="Nothing was erased"):
            run(mara, "purge")
    assert len(memory.list(mara)) == 1
    monkeypatch.setattr("builtins.input", lambda: "Mara@example.org ")
    shown = run(mara, "purge", "--reason=they asked")
    assert "1  memories" in shown
    assert "Erased for good" in shown
    assert memory.list(mara) == []
    action, subject, counts, reason = audited(mara)[-1]
    assert (action, subject, reason) == ("memories.purged", mara.user_id, "they asked")
    assert counts["memories"] == 1


def test_a_script_need_not_be_asked(mara: Scope, bob: Scope) -> None:
    memory.remember(mara, text="I own a boat.")
    memory.remember(bob, text="I own a bike.")
    run(mara, "purge", "--yes")
    run(mara, "purge", "--yes")
    assert audited(mara)[-1][2]["memories"] == 0
    assert len(memory.list(bob)) == 1


def test_nobody_is_taken_for_somebody_else(mara: Scope, bob: Scope) -> None:
    slug = Tenant.objects.get(pk=bob.tenant_id).slug
    for person, tenant in (("mara@example.org", slug), ("x@example.org", slug), ("", "nowhere")):
        with pytest.raises(CommandError, match="no person"):
            call_command("memories", "list", f"--person={person}", f"--tenant={tenant}")


def test_what_is_not_there_is_said(mara: Scope, bob: Scope) -> None:
    his = memory.remember(bob, text="I own a bike.")
    with pytest.raises(CommandError):
        run(mara, "forget", str(his.pk))
    with pytest.raises(CommandError):
        run(mara, "remember", "  ")
