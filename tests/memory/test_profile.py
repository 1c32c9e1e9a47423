"""The profile says what is remembered, no more, and nothing that is gone."""

from typing import Any

import pytest

from accounts.scope import Scope, entered
from memory.edit import edit, forget
from memory.models import Job, Memory, Profile
from memory.profile import checked, profile_of
from memory.remember import add
from tests.memory.conftest import keep, run_kind
from tests.stub_model import StubModel

pytestmark = pytest.mark.django_db


def write(stub: StubModel, *sentences: dict[str, Any]) -> None:
    stub.script(kind="json", contains="short profile", answer={"sentences": list(sentences)})


def sentences(scope: Scope) -> list[str]:
    return [one.text for one in profile_of(scope).sentences]


def written(scope: Scope) -> Job:
    job = run_kind(scope, Job.Kind.PROFILE)
    assert job is not None
    return job


def test_without_a_model_the_memories_stand_in_groups(mara: Scope) -> None:
    keep(mara, "The user is allergic to nuts.", safety=True)
    keep(mara, "The user lives in Porto.")
    keep(mara, "The user wants bullet points.", kind="persona")
    shown = profile_of(mara)
    assert shown.sentences == () or list(shown.sentences) == []
    assert [[one.text for one in group.memories] for group in shown.groups] == [
        ["The user is allergic to nuts."],
        ["The user wants bullet points."],
        ["The user lives in Porto."],
    ]
    assert not shown.pending


def test_the_first_look_has_it_written_and_each_sentence_has_its_facts(
    mara: Scope, model: StubModel
) -> None:
    porto = keep(mara, "The user lives in Porto.")
    write(model, {"text": "You live in Porto.", "memories": ["1"]})
    assert profile_of(mara).pending
    written(mara)
    [one] = profile_of(mara).sentences
    assert (one.text, [memory.pk for memory in one.memories]) == ("You live in Porto.", [porto.pk])
    assert profile_of(mara).written_at is not None


def test_a_person_who_never_looks_costs_no_call(mara: Scope, model: StubModel) -> None:
    add(mara, text="I live in Porto.")
    assert run_kind(mara, Job.Kind.PROFILE) is None


@pytest.mark.parametrize(
    ("sentence", "code"),
    [
        ({"text": "You live in Lisbon.", "memories": ["1"]}, "other_name"),
        ({"text": "You have lived in Porto for 9 years.", "memories": ["1"]}, "other_number"),
        ({"text": "You are kind and generous.", "memories": ["1"]}, "not_supported"),
        ({"text": "You live in Porto.", "memories": []}, "no_memories"),
        ({"text": "You live in Porto.", "memories": ["7"]}, "unknown_memory"),
        ({"text": "You live in Porto.", "memories": [True]}, "unknown_memory"),
        ({"text": "", "memories": ["1"]}, "empty"),
        ({"text": "You live in Porto. " * 30, "memories": ["1"]}, "too_long"),
        ({"text": "Do you live in Porto?", "memories": ["1"]}, "question"),
        ({"text": "You live in Porto https://evil.example", "memories": ["1"]}, "suspicious"),
        ({"memories": ["1"]}, "wrong_shape"),
        ("You live in Porto.", "wrong_shape"),
    ],
)
def test_a_sentence_that_says_more_than_its_facts_is_left_out(sentence: Any, code: str) -> None:
    found = checked([sentence], [Memory(text="The user lives in Porto.", key="k")])
    assert found.sentences == []
    assert found.refused == {code: 1}


def test_what_is_forgotten_or_changed_leaves_the_profile_at_once(
    mara: Scope, model: StubModel
) -> None:
    porto = keep(mara, "The user lives in Porto.")
    cat = keep(mara, "The user has a cat called Miso.")
    keep(mara, "The user is a nurse.")
    lines = ["The user lives in Porto.", "The user has a cat called Miso.", "The user is a nurse."]

    def extract(request: Any) -> Any:
        listed = request.question.splitlines()
        number = {line.split(". ", 1)[1]: line.split(".")[0] for line in listed if ". " in line}
        said = ["You live in Porto.", "You have a cat called Miso.", "You are a nurse."]
        pairs = zip(said, lines, strict=True)
        return {
            "sentences": [
                {"text": text, "memories": [number[line]]} for text, line in pairs if line in number
            ]
        }

    model.extract = extract
    profile_of(mara)
    written(mara)
    assert len(sentences(mara)) == 3
    forget(mara, memory=porto.pk)
    edit(mara, memory=cat.pk, text="The user has a dog called Rex.")
    assert sentences(mara) == ["You are a nurse."]
    with entered(mara):
        assert Profile.objects.within(mara).get().stale
        assert Job.objects.within(mara).get(kind="profile").state == Job.State.WAITING
    written(mara)
    with entered(mara):
        kept = Profile.objects.within(mara).get()
    assert not kept.stale
    assert "Porto" not in str(kept.sentences)


def test_a_profile_without_a_model_loses_what_is_gone(
    mara: Scope, model: StubModel, settings: Any
) -> None:
    porto = keep(mara, "The user lives in Porto.")
    write(model, {"text": "You live in Porto.", "memories": ["1"]})
    profile_of(mara)
    written(mara)
    settings.OPENAI_BASE_URL = settings.CHAT_MODEL = ""
    forget(mara, memory=porto.pk)
    written(mara)
    with entered(mara):
        assert Profile.objects.within(mara).get().sentences == []


def test_an_answer_of_no_use_is_told_and_the_memories_are_shown(
    mara: Scope, model: StubModel
) -> None:
    keep(mara, "The user lives in Porto.")
    write(model, {"text": "You live in Lisbon.", "memories": ["1"]})
    profile_of(mara)
    assert written(mara).result["rejected"] == "other_name"
    shown = profile_of(mara)
    assert shown.problem
    assert [one.text for group in shown.groups for one in group.memories] == [
        "The user lives in Porto."
    ]


def test_a_change_while_it_is_written_has_it_written_again(
    mara: Scope, model: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(mara, "The user lives in Porto.")
    profile_of(mara)

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        add(mara, text="I own a boat.")
        return {"sentences": [{"text": "You live in Porto.", "memories": ["1"]}]}

    monkeypatch.setattr("memory.profile.complete_json", meanwhile)
    assert written(mara).state == Job.State.WAITING
    assert profile_of(mara).pending


def test_a_profile_is_of_this_person_alone(mara: Scope, bob: Scope, model: StubModel) -> None:
    keep(bob, "The user lives in Oslo.")
    keep(mara, "The user lives in Porto.")
    profile_of(mara)
    written(mara)
    assert "Oslo" not in model.asked("json")[-1].prompt
