"""The browser of the browser tests: found, installed where that is allowed, or asked for."""

import os
import shutil
from pathlib import Path

import pytest
from local import chromium
from local.refusal import Refusal

APT_GET = """#!/bin/sh
echo "$@" >> {log}
[ "$4" = update ] && exit {update}
[ {install} -ne 0 ] && {{ echo "E: Unable to locate package chromium" >&2; exit {install}; }}
printf '#!/bin/sh\\n' > {folder}/chromium
/bin/chmod 755 {folder}/chromium
"""


class Machine:
    """A machine whose path holds nothing but what the test puts there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "asked"

    def has(self, name: str, text: str = "#!/bin/sh\n") -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def has_apt_get(self, *, update: int = 0, install: int = 0) -> None:
        places = {"folder": self.folder, "log": self.log}
        self.has("apt-get", APT_GET.format(update=update, install=install, **places))

    @property
    def asked(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return Machine(tmp_path)


def test_a_browser_that_is_there_is_used(machine: Machine) -> None:
    machine.has("google-chrome")
    machine.has_apt_get()
    assert chromium.found(needed=True) == str(machine.folder / "google-chrome")
    assert machine.asked == []


@pytest.mark.parametrize("update", [0, 100])
def test_root_installs_it_even_if_the_lists_cannot_be_fetched(
    machine: Machine, update: int
) -> None:
    machine.has_apt_get(update=update)
    assert chromium.found(needed=True) == str(machine.folder / "chromium")
    assert [line.split()[-1] for line in machine.asked] == ["update", "chromium"]


def test_what_apt_get_says_when_it_fails_is_shown(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.has_apt_get(install=100)
    with pytest.raises(Refusal, match="apt-get could not install it"):
        chromium.found(needed=True)
    assert "Unable to locate package chromium" in capsys.readouterr().err


def test_an_ordinary_user_is_told_what_to_install(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.has_apt_get()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Refusal, match="sudo apt-get install chromium"):
        chromium.found(needed=True)
    assert chromium.found(needed=False) is None
    assert "without it they will fail" in capsys.readouterr().err
    assert machine.asked == []


def test_without_apt_get_it_is_asked_for(machine: Machine) -> None:
    assert shutil.which("apt-get") is None
    with pytest.raises(Refusal, match="install it"):
        chromium.found(needed=True)
