"""From a machine with whatever Pythons to the module that was asked for."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from local import bootstrap
from local.lint import shell_scripts

from tests.script.conftest import CLONE

TOOLS = ("sh", "dirname", "cat", "env")
BROKEN = "#!/bin/sh\necho 'command not found' >&2\nexit 127\n"
FRONTS = ("server", "test", "lint", "fix", "console", "bench")


@pytest.fixture
def clone(folder: Path) -> Path:
    """A clone in which the bootstrap only says which Python runs it, and with what."""
    made = folder / "a clone"
    shutil.copytree(CLONE / "script" / "local", made / "script" / "local")
    for name in FRONTS:
        shutil.copy2(CLONE / "script" / name, made / "script" / name)
    says = "import sys; print(sys.executable, *sys.argv[1:], sep='|')\n"
    (made / "script" / "local" / "bootstrap.py").write_text(says)
    return made


@pytest.fixture
def path(folder: Path) -> Path:
    """A folder for the PATH, with what every system has and no Python."""
    made = folder / "bin"
    made.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (made / name).symlink_to(found)
    return made


def program(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def works(file: Path) -> None:
    """A Python of which one can see under which name it was started."""
    program(file, f'#!/bin/sh\necho "{file.name}" >>"$HOME/tried"\nexec "{sys.executable}" "$@"\n')


def start(
    clone: Path, path: Path, *arguments: str, **more: str
) -> "subprocess.CompletedProcess[str]":
    environment: Mapping[str, str] = {"PATH": str(path), "HOME": str(path.parent), **more}
    return subprocess.run(
        [clone / "script" / "server", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_shim_that_does_not_run_is_no_python(clone: Path, path: Path) -> None:
    program(path / "python3.14", BROKEN)
    program(path / "python3", "#!/bin/sh\nexit 1\n")  # one that is too old
    works(path / "python3.13")
    done = start(clone, path, "an argument", "another")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("|server|an argument|another\n")
    assert (path.parent / "tried").read_text().split()[0] == "python3.13"


def test_pyenvs_versions_are_found_though_not_on_the_path(clone: Path, path: Path) -> None:
    program(path / "python3", BROKEN)
    root = path.parent / "py env"
    program(root / "versions" / "3.13.9" / "bin" / "python3", BROKEN)
    works(root / "versions" / "3.12.1" / "bin" / "python3")
    done = start(clone, path, PYENV_ROOT=str(root))
    assert done.returncode == 0, done.stderr
    assert (path.parent / "tried").exists()


def test_the_environment_itself_comes_first(clone: Path, path: Path) -> None:
    works(clone / ".venv" / "bin" / "python")
    assert start(clone, path).returncode == 0


def test_uv_is_asked_for_a_python_where_there_is_none(clone: Path, path: Path) -> None:
    managed = path.parent / "managed" / "python"
    works(managed)
    program(path / "uv", f'#!/bin/sh\ncase "$2" in find) echo "{managed}" ;; esac\n')
    done = start(clone, path)
    assert done.returncode == 0, done.stderr
    assert "asking uv" in done.stderr


def test_without_any_python_one_sentence_says_what_is_needed(clone: Path, path: Path) -> None:
    program(path / "uv", BROKEN)
    done = start(clone, path)
    assert done.returncode == 1
    assert "Recollect needs Python 3.12 or newer" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("file", shell_scripts(), ids=lambda file: file.name)
def test_every_shell_script_parses_and_can_be_run(file: Path) -> None:
    shell = "bash" if "bash" in file.read_text().splitlines()[0] else "sh"
    for program_ in {shell, "bash"}:
        assert subprocess.run([program_, "-n", file], check=False).returncode == 0
    assert file.stat().st_mode & 0o111


@pytest.mark.parametrize("name", FRONTS)
def test_every_front_hands_over_to_a_module_of_its_name(name: str) -> None:
    assert f'front.sh" {name} ' in (CLONE / "script" / name).read_text()
    assert (CLONE / "script" / "local" / f"{name}.py").exists()


def test_packages_are_installed_anew_only_when_the_requirements_change(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "PYTHON", Path(sys.executable))
    pins = folder / "requirements.txt"
    pins.write_text("one==1\n")
    stamp = folder / "stamp"
    assert not bootstrap.installed([pins], stamp)
    stamp.write_text(bootstrap.stamp_of([pins]) + "\n")
    assert bootstrap.installed([pins], stamp)
    pins.write_text("one==2\n")
    assert not bootstrap.installed([pins], stamp)


def pip_that_trusts(only: str, asked: list[list[str]]) -> object:
    """A pip behind a network whose authority stands in one bundle only."""

    def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
        asked.append(command)
        refused = only not in command
        said = f"SSLError({bootstrap.UNTRUSTED})" if refused else ""
        return subprocess.CompletedProcess(command, int(refused), "", said)

    return run


def test_pip_is_told_what_the_system_trusts_only_when_it_trusts_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = folder / "bundle"
    bundle.touch()
    monkeypatch.setattr(bootstrap, "BUNDLES", ("/nonexistent", str(bundle)))
    asked: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "run", pip_that_trusts("--quiet", asked))
    bootstrap.fetch_uv()
    assert len(asked) == 1
    assert "--cert" not in asked[0]
    asked.clear()
    monkeypatch.setattr(bootstrap, "run", pip_that_trusts(str(bundle), asked))
    bootstrap.fetch_uv()
    assert [command[-2:] for command in asked[1:]] == [["--cert", str(bundle)]]
    monkeypatch.setattr(bootstrap, "BUNDLES", ())
    with pytest.raises(SystemExit, match="Could not fetch uv"):
        bootstrap.fetch_uv()


def test_what_developers_have_is_enough_to_run_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, develops = folder / "requirements.txt", folder / "requirements-dev.txt"
    for name, value in {
        "PYTHON": Path(sys.executable),
        "RUNS": runs,
        "DEVELOPS": develops,
        "INSTALLED": folder / "installed",
        "DEVELOPED": folder / "developed",
    }.items():
        monkeypatch.setattr(bootstrap, name, value)
    for file in (runs, develops):
        file.write_text("one==1\n")
    assert not bootstrap.complete(development=False)
    bootstrap.INSTALLED.write_text(bootstrap.stamp_of([runs]))
    assert bootstrap.complete(development=False)
    assert not bootstrap.complete(development=True)
    bootstrap.INSTALLED.unlink()
    bootstrap.DEVELOPED.write_text(bootstrap.stamp_of([runs, develops]))
    assert bootstrap.complete(development=False)
    assert bootstrap.complete(development=True)


def test_without_a_home_there_still_is_a_sentence(clone: Path, path: Path) -> None:
    program(path / "uv", BROKEN)
    done = subprocess.run(
        [clone / "script" / "server"],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Recollect needs Python 3.12 or newer" in done.stderr
