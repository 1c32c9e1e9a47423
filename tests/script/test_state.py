"""Where the state lies, who may read it, and what is remembered in it."""

import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from local import state
from local.account import Account
from local.refusal import Refusal
from local.state import Keys, State

ME = Account("me", os.geteuid(), os.getegid(), other=False)
KEYS = Keys(20001, 20002, "super", "migrate", "web", "valkey")


class Shut(Account):
    """An account that can enter no folder below one named closed."""

    def reaches(self, path: Path) -> bool:
        return "closed" not in path.parts


SHUT = Shut("postgres", 1, 1, other=True)


def test_the_state_lies_in_the_clone_unless_told_otherwise() -> None:
    assert state.chosen({}, ME, Path("/somewhere/a clone")) == (
        Path("/somewhere/a clone/.state"),
        None,
    )
    assert state.chosen({"RECOLLECT_STATE": "/else/where"}, ME) == (Path("/else/where"), None)


def test_under_a_closed_parent_the_state_lies_elsewhere_and_that_is_said() -> None:
    chosen, note = state.chosen({}, SHUT, Path("/closed/a clone"))
    assert re.fullmatch(r"/var/lib/recollect/a-clone-[0-9a-f]{8}", str(chosen))
    assert note is not None
    assert str(chosen) in note
    other, _ = state.chosen({}, SHUT, Path("/closed/there/a clone"))
    assert other != chosen


def test_a_named_state_that_the_servers_cannot_reach_is_refused() -> None:
    with pytest.raises(Refusal, match=r"RECOLLECT_STATE is /closed/x.*'postgres'.*cannot reach"):
        state.chosen({"RECOLLECT_STATE": "/closed/x"}, SHUT)


def test_others_may_pass_the_state_folder_but_read_nothing(own: State) -> None:
    state.save_env(own, {"REDIS_URL": "redis://x"})
    state.save_keys(own, KEYS)
    assert own.folder.stat().st_mode & 0o777 == 0o711
    for path in (own.logs, own.run, own.beat):
        assert path.stat().st_mode & 0o777 == 0o700
    for file in (own.env, own.keys):
        assert file.stat().st_mode & 0o777 == 0o600


# The folder of somebody else can only be made by giving one away.
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_state_of_somebody_else_is_refused_by_name(own: State) -> None:
    os.chown(own.folder, 65534, 65534)
    with pytest.raises(Refusal, match=r"belongs to nobody, and you are root: start as nobody"):
        state.prepared(own.folder)


def test_a_file_in_the_place_of_the_state_is_refused(folder: Path) -> None:
    (folder / "state").touch()
    with pytest.raises(Refusal, match="it is a file"):
        state.prepared(folder / "state")


def test_a_full_disk_is_one_clear_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1000

    def usage(_path: Path) -> Any:
        return Usage

    monkeypatch.setattr("shutil.disk_usage", usage)
    with pytest.raises(Refusal, match="is full: free some space"):
        state.prepared(folder / "state")


def test_an_unwritable_place_is_one_clear_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: Any, **__: Any) -> None:  # root could write anywhere
        raise PermissionError(13, "Permission denied", "/some/state")

    monkeypatch.setattr(Path, "mkdir", forbidden)
    with pytest.raises(Refusal, match="Cannot write to /some/state: Permission denied"):
        state.prepared(folder / "state")


def test_secrets_are_made_once_and_other_lines_stay(own: State) -> None:
    state.save_env(own, {"REDIS_URL": "redis://one"})
    first = state.read_env(own.env)
    assert len(first["SECRET_KEY"]) > 50
    own.env.write_text(own.env.read_text() + "# mine\nOPENAI_API_KEY=sk=1\n")
    own.env.chmod(0o644)
    state.save_env(own, {"REDIS_URL": "redis://two"})
    assert state.read_env(own.env) == first | {
        "REDIS_URL": "redis://two",
        "OPENAI_API_KEY": "sk=1",
    }
    assert "# mine\n" in own.env.read_text()
    assert own.env.stat().st_mode & 0o777 == 0o600


def test_the_field_key_is_one_that_fernet_takes(own: State) -> None:
    from cryptography.fernet import Fernet

    state.save_env(own, {})
    key = state.read_env(own.env)["FIELD_KEYS"]
    assert Fernet(key).decrypt(Fernet(key).encrypt(b"x")) == b"x"


def test_passwords_are_not_made_anew_for_a_database_that_has_others(own: State) -> None:
    (own.folder / "postgres" / "data").mkdir(parents=True)
    with pytest.raises(Refusal, match="put it back from a backup"):
        state.keys_of(own)


def test_own_servers_count_from_the_environment_and_from_the_file() -> None:
    ours = KEYS.addresses()
    assert state.own_addresses({}, ours, KEYS) == {}
    theirs = "postgres://me:pw@db.example/recollect"
    assert state.own_addresses({"DATABASE_URL": theirs}, ours, KEYS) == {"DATABASE_URL": theirs}
    assert state.own_addresses({}, ours | {"REDIS_URL": "redis://x"}, KEYS) == {
        "REDIS_URL": "redis://x"
    }
    assert state.own_addresses({"REDIS_URL": ""}, ours, KEYS) == {}


def test_a_lock_is_held_by_one_at_a_time(own: State) -> None:
    file = own.run / "lock"
    with state.locked(file) as first, state.locked(file, wait=False) as second:
        assert (first, second) == (True, False)
    with state.locked(file, wait=False) as again:
        assert again


def test_a_port_is_free_or_taken_or_impossible() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert not state.port_is_free(taken.getsockname()[1])
    assert state.port_is_free(state.free_port())
    with pytest.raises(OSError, match="assign"):
        state.port_is_free(20000, "192.0.2.1")


@pytest.mark.parametrize("path", ["/dev/null/state", "/" + "x" * 300])
def test_a_path_that_no_folder_can_have_is_refused_in_words(path: str) -> None:
    with pytest.raises(Refusal, match="There can be no folder"):
        state.prepared(Path(path))
