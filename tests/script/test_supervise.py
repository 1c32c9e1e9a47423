"""What the supervisor is told, read by the supervisor's own parser."""

from pathlib import Path
from typing import Any

import pytest
from local import keeper, state, supervise
from local.state import State
from supervisor.options import ServerOptions
from supervisor.supervisord import Supervisor


def read(own: State) -> Any:
    """The settings as supervisord understands them."""
    file = own.run / "supervisord.conf"
    state.write_private(file, supervise.configuration(own))
    options = ServerOptions()
    options.realize(["-n", "-c", str(file)])
    return options


@pytest.fixture
def odd(folder: Path) -> State:
    """A state folder whose name has what must be escaped."""
    return state.prepared(folder / "100% of it's state")


def test_supervisord_understands_the_settings(odd: State) -> None:
    options = read(odd)
    # In one group, which is stopped at once: each of several groups waits for the one before.
    [group] = options.process_group_configs
    programs = {program.name: program for program in group.process_configs}
    assert set(programs) == {"web", "interactive", "background", "beat"}
    for name, program in programs.items():
        assert program.stdout_logfile == str(odd.logs / f"{name}.log")
        assert program.stdout_logfile_maxbytes > 0
        assert program.redirect_stderr
        assert program.environment["RECOLLECT_SERVICE"] == name
        assert program.startretries > 10_000
    assert f"'{odd.beat}/schedule'".replace("it's", "it'\"'\"'s") in programs["beat"].command
    assert options.pidfile == str(odd.run / "supervisord.pid")


def test_each_queue_has_a_worker_of_its_own(own: State) -> None:
    from django.conf import settings

    queues = {
        program.arguments[program.arguments.index("-Q") + 1]
        for program in supervise.programs(own)
        if "-Q" in program.arguments
    }
    assert queues == {"interactive", "background"}
    assert settings.CELERY_TASK_DEFAULT_QUEUE in queues


def test_programs_are_started_before_the_supervisor_waits_for_anything(
    own: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    class Group:
        def transition(self) -> None:
            happened.append("started")

    monkeypatch.setattr(Supervisor, "runforever", lambda self: happened.append("waits"))
    kept = keeper.Keeper(read(own))
    kept.process_groups = {"recollect": Group()}
    kept.runforever()
    assert happened == ["started", "waits"]


def test_deaths_are_counted_from_the_supervisors_log(own: State) -> None:
    watched = supervise.Supervisor(own, {})
    assert watched.log_size() == watched.deaths("web", 0) == 0
    watched.log.write_text("INFO exited: web (exit status 1; not expected)\n")
    since = watched.log_size()
    with watched.log.open("a") as log:
        log.write("INFO exited: web (x)\nINFO exited: beat (x)\nINFO stopped: web (x)\n")
    assert watched.deaths("web", 0) == 2
    assert watched.deaths("web", since) == 1
