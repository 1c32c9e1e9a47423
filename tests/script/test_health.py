"""What counts as a process that does its work."""

import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from local import health, state
from local.state import State


def test_beat_is_well_once_it_has_written_its_schedule_since_it_was_started(own: State) -> None:
    began = time.time()
    assert not health.beat(own, began)
    schedule = own.beat / "schedule.db"
    schedule.touch()
    os.utime(schedule, (began - 60, began - 60))  # of a former run
    assert not health.beat(own, began)
    schedule.touch()
    assert health.beat(own, began)


def test_a_broker_that_is_away_is_no_worker_and_no_error() -> None:
    assert not health.worker(f"redis://127.0.0.1:{state.free_port()}/0", "interactive")


class Stranger(BaseHTTPRequestHandler):
    """Another installation, which is well."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("X-Recollect-Start", "theirs")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *arguments: object) -> None:
        pass


def test_only_the_web_server_of_this_start_counts() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            assert health.web(address, "localhost", "theirs")
            assert not health.web(address, "localhost", "ours")
        finally:
            server.shutdown()
            thread.join()
    assert not health.web(address, "localhost", "theirs")
