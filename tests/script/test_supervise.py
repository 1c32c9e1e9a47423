"""What the supervisor is told, read by the supervisor's own parser."""

from pathlib import Path
from typing import Any

import pytest
from local import state, supervise
from local.state import State
from supervisor.options import ServerOptions


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
    programs = {group.name: group.process_configs[0] for group in options.process_group_configs}
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


def test_deaths_are_counted_from_the_supervisors_log(own: State) -> None:
    watched = supervise.Supervisor(own, {})
    assert watched.log_size() == watched.deaths("web", 0) == 0
    watched.log.write_text("INFO exited: web (exit status 1; not expected)\n")
    since = watched.log_size()
    with watched.log.open("a") as log:
        log.write("INFO exited: web (x)\nINFO exited: beat (x)\nINFO stopped: web (x)\n")
    assert watched.deaths("web", 0) == 2
    assert watched.deaths("web", since) == 1
