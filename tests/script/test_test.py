"""Servers for tests: each run has its own, and no run stops another's."""

import os
from pathlib import Path

import pytest
from local import state, test
from local.refusal import Refusal
from local.state import State


@pytest.fixture
def base(own: State, monkeypatch: pytest.MonkeyPatch) -> State:
    """The state folder under which the servers are to be made."""
    monkeypatch.setenv("RECOLLECT_STATE", str(own.folder))
    return own


def test_two_runs_at_once_have_two_sets_of_servers(base: State) -> None:
    with test.borrowed("test") as one, test.borrowed("test") as two:
        assert one.folder != two.folder
        addresses = [state.read_env(own.env)["DATABASE_URL"] for own in (one, two)]
        assert addresses[0] != addresses[1]
        test.main(["--stop"])
        assert test._of(one, durable=False).dead() == []
    assert test._of(one, durable=False).dead() == ["Postgres", "Valkey"]


def test_kept_servers_are_printed_for_a_shell_and_stopped_by_name(
    base: State, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert test.main(["--env", "mine"]) == 0
    lines = capsys.readouterr().out.splitlines()
    folder = base.folder / "test" / "mine"
    assert lines[0] == f"export RECOLLECT_STATE='{folder}'"
    assert {line.partition("=")[0] for line in lines} >= {
        f"export {name}" for name in (*state.ADDRESSES, "SECRET_KEY", "FIELD_KEYS")
    }
    # As in the shell that has these variables: still the same place.
    monkeypatch.setenv("RECOLLECT_STATE", str(folder))
    assert test.main(["--stop", "other"]) == 0
    kept = test._of(State(folder), durable=False)
    assert kept.dead() == []
    assert test.main(["--stop", "mine"]) == 0
    assert kept.dead() == ["Postgres", "Valkey"]


def test_a_name_is_no_path(base: State) -> None:
    with pytest.raises(Refusal, match="letters, digits"):
        test.main(["--env", "../x"])


def test_a_test_process_sees_only_the_test_servers(base: State) -> None:
    Path(base.env).write_text("DATABASE_URL=postgres://theirs\n")
    assert test.variables(base) == {
        "RECOLLECT_STATE": str(base.folder),
        "DATABASE_URL": "postgres://theirs",
    }
    assert set(state.ADDRESSES) < set(test.HARMFUL)
    assert "OPENAI_API_KEY" in test.HARMFUL
    assert os.environ["RECOLLECT_STATE"] == str(base.folder)


def test_a_whole_run_leaves_no_test_out_and_takes_none_twice(base: State) -> None:
    at_once, journeys = test.passes([], processors=2)
    assert at_once == ["-n", "2", "--dist", "loadfile", "--ignore=tests/browser"]
    assert journeys == ["tests/browser"]
    assert (state.CLONE / test.JOURNEYS).is_dir()
    assert test.passes([], processors=1)[0] == ["--ignore=tests/browser"]
    assert test.passes(["tests/memory", "-x"], processors=2) == [["tests/memory", "-x"]]
