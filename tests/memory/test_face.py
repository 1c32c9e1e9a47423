"""The Python face: what docs/python.md shows works as it says, in the scope and nowhere else."""

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

import memory
from accounts.errors import InvalidInput, NotFound, Unavailable
from accounts.join import AddressTaken, join, new_person, new_tenant
from accounts.scope import Scope
from memory import embedder, face

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def told(comment: str, value: Any) -> bool:
    """Tell whether a comment that begins with a value, written as Python, says the same."""
    said = re.match(r"(None|\d+|\"[^\"]*\"|\[.*\]|\{)", comment)
    if said is None:
        return True
    if said[1] == "{":
        counts = re.findall(r'"([\w ]+)": (\d+)', comment)
        return bool(counts) and all(value[kind] == int(count) for kind, count in counts)
    return bool(value == eval(said[1]))  # noqa: S307 - our own documentation


def test_what_the_documentation_shows_works_as_it_says(mara: Scope, bob: Scope) -> None:
    his = memory.remember(bob, text="Bob is vegetarian.")
    names: dict[str, Any] = {
        "tenant_id": mara.tenant_id,
        "user_id": mara.user_id,
        "next_year": timezone.now() + timedelta(days=365),
        "session_id": uuid4(),
    }
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", DOCS, re.S):
        for line in block.splitlines():
            code, _, comment = line.partition("  #")
            if not code.strip():
                continue
            try:
                compiled = compile(code.strip(), line, "eval")
            except SyntaxError:
                exec(compile(code.strip(), line, "exec"), names)  # noqa: S102 - ours
                continue
            value = eval(compiled, names)  # noqa: S307 - ours
            tags = getattr(value, "tags", None)
            assert told(comment.strip(), tags if comment.strip().startswith('["') else value), line
            checked += bool(comment)
    assert checked > 10
    assert [one.pk for one in memory.list(bob)] == [his.pk]
    assert memory.list(mara) == []


def test_every_verb_of_the_face_is_in_the_documentation_and_has_a_docstring() -> None:
    for name in face.__all__:
        assert f"memory.{name}(" in DOCS
        assert (getattr(face, name).__doc__ or "").startswith("Return ")


def test_it_can_be_imported_before_the_apps_are_ready() -> None:
    code = (
        "import memory, sys; assert callable(memory.__getattr__);"
        "assert 'django' not in sys.modules; assert 'recall' in dir(memory); print('ready')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "ready"


def test_a_module_that_bears_a_verbs_name_is_both() -> None:
    from memory.purge import purge

    assert memory.purge.purge is purge
    assert callable(memory.purge)
    with pytest.raises(AttributeError):
        _ = memory.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "verb",
    [
        lambda scope, pk: memory.edit(scope, memory=pk, text="Mine now."),
        lambda scope, pk: memory.forget(scope, memory=pk),
        lambda scope, pk: memory.restore(scope, memory=pk),
        lambda scope, pk: memory.restore(scope, memory=pk, version=1),
        lambda scope, pk: memory.undo(scope, memory=pk),
        lambda scope, pk: memory.versions(scope, memory=pk),
        lambda scope, pk: memory.pin(scope, memory=pk),
        lambda scope, pk: memory.unpin(scope, memory=pk),
        lambda scope, pk: memory.tag(scope, memory=pk, tags=["x"]),
        lambda scope, pk: memory.expire(scope, memory=pk, at=None),
        lambda scope, pk: memory.keep_to(scope, memory=pk, session=None),
    ],
)
def test_somebody_elses_memory_is_an_unknown_one(mara: Scope, bob: Scope, verb: Any) -> None:
    """A26, B12."""
    hers = memory.remember(mara, text="I own a boat.")
    said = set()
    for pk in (hers.pk, uuid4()):
        with pytest.raises(NotFound) as error:
            verb(bob, pk)
        said.add(str(error.value))
    assert len(said) == 1
    (kept,) = memory.list(mara)
    assert (kept.text, kept.pinned, kept.tags) == ("I own a boat.", False, [])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda scope: memory.remember(scope, text="  "),
        lambda scope: memory.remember(scope, text="x" * 2_001),
        lambda scope: memory.list(scope, kind="nonsense"),
        lambda scope: memory.list(scope, state="nonsense"),
        lambda scope: memory.list(scope, limit=0),
        lambda scope: memory.recall(scope, "boats", limit=0),
    ],
)
def test_nonsense_is_refused_in_a_sentence(mara: Scope, wrong: Any) -> None:
    with pytest.raises(InvalidInput) as error:
        wrong(mara)
    assert str(error.value).endswith(".")


def test_an_edited_memory_is_found_by_its_new_words_alone(mara: Scope) -> None:
    """B11."""
    rex = memory.remember(mara, text="I have a dog called Rex.")
    memory.edit(mara, memory=rex.pk, text="I have a cat called Miso.")
    assert [one.pk for one in memory.search(mara, "cat")] == [rex.pk]
    assert [one.pk for one in memory.search(mara, "Miso")] == [rex.pk]
    assert [one.text for one in memory.search(mara, "dog") if "dog" in one.text] == []
    (before,) = memory.versions(mara, memory=rex.pk)
    assert before.text == "I have a dog called Rex."
    assert ("gone", "dog") in before.diff
    assert ("new", "cat") in before.diff


def test_without_the_embedder_it_is_kept_and_found_by_words(
    mara: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: Any, **kwargs: Any) -> Any:
        raise Unavailable

    monkeypatch.setattr(embedder.current(), "embed", away)
    monkeypatch.setattr(embedder, "embed", away)
    memory.remember(mara, text="I own a boat.")
    assert [one.text for one in memory.search(mara, "boat")] == ["I own a boat."]
    memory.recall(mara, "boat")  # no error


def test_tags_and_an_end_can_be_given_at_once(mara: Scope) -> None:
    kept = memory.remember(
        mara, text="I own a boat.", tags=["Sea"], expires_at=timezone.now() + timedelta(days=1)
    )
    assert kept.tags == ["sea"]
    assert kept.expires_at is not None
    again = memory.remember(mara, text="I own a boat.", tags=["summer"])
    assert again.tags == ["sea", "summer"]


def test_people_and_tenants_whose_names_look_alike_share_nothing() -> None:
    """A20: keys are columns: tenants and people of one name, and addresses that look alike, have
    each their own; a name that shows nothing is refused."""
    addresses = ("mara@example.org", "mara@example.com", "m.ara@example.org", "mara+@example.org")
    people = [new_person(email=address, password=None, name="Mara") for address in addresses]
    scopes = []
    for tenant in (new_tenant(name="Acme"), new_tenant(name="Acme"), new_tenant(name="acme")):
        for user in people:
            join(tenant, user)
            scopes.append(Scope(tenant.pk, user.pk))
    for number, scope in enumerate(scopes):
        memory.remember(scope, text=f"I own the boat number {number}.")
    for number, scope in enumerate(scopes):
        own = [f"I own the boat number {number}."]
        assert [one.text for one in memory.list(scope)] == own
        found = memory.recall(scope, "Which boat do I own?").memories
        assert [one.text for one in found] == own
    for same in ("MARA@example.org", " mara@EXAMPLE.ORG "):
        with pytest.raises(AddressTaken):
            new_person(email=same, password=None, name="Mara")
    for blank in (" ", "\u200b", "\u2060\u00a0"):
        with pytest.raises(InvalidInput):
            new_person(email="other@example.org", password=None, name=blank)
        with pytest.raises(InvalidInput):
            new_tenant(name=blank)
