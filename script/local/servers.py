"""The embedded servers of a state folder, as one thing."""

from collections.abc import Container
from dataclasses import dataclass

from local import account as accounts
from local import programs
from local.postgres import Postgres
from local.progress import step
from local.state import Keys, State, free_port, keys_of, port_is_free, save_env, save_keys
from local.valkey import Valkey


@dataclass(slots=True)
class Servers:
    """Postgres and Valkey of one state folder; None where the person brings a server along."""

    state: State
    keys: Keys
    postgres: Postgres | None
    valkey: Valkey | None

    def start(self) -> None:
        """Have them run and answer, with roles, database and extension made."""
        self._move_ports()
        if self.postgres:
            with step("Postgres") as line:
                self.postgres.make()
                fresh = self.postgres.start()
                self.postgres.bootstrap()
                found = "" if fresh else "found running, "
                line.name = f"Postgres ({found}port {self.keys.postgres_port})"
        if self.valkey:
            with step("Valkey") as line:
                fresh = self.valkey.start()
                found = "" if fresh else "found running, "
                line.name = f"Valkey ({found}port {self.keys.valkey_port})"
        save_env(self.state, self._addresses())

    def stop(self) -> None:
        """Stop them, cleanly."""
        if self.valkey:
            self.valkey.stop()
        if self.postgres:
            self.postgres.stop()

    def dead(self) -> list[str]:
        """The names of those that should run and do not."""
        both = (("Postgres", self.postgres), ("Valkey", self.valkey))
        return [name for name, server in both if server and not server.pid]

    def revive(self) -> None:
        """Start again what has died."""
        if self.postgres and not self.postgres.pid:
            self.postgres.start()
        if self.valkey:
            if not self.valkey.pid:
                self.valkey.start()
            self.valkey.trim_log()

    def _addresses(self) -> dict[str, str]:
        addresses = self.keys.addresses()
        if not self.valkey:
            del addresses["REDIS_URL"]
        if not self.postgres:
            del addresses["DATABASE_URL"], addresses["DATABASE_OWNER_URL"]
        return addresses

    def _move_ports(self) -> None:
        """Take other ports where somebody else holds the remembered ones."""
        before = (self.keys.postgres_port, self.keys.valkey_port)
        if self.postgres and not self.postgres.pid and not port_is_free(before[0]):
            self.keys.postgres_port = free_port()
        if self.valkey and not self.valkey.pid and not port_is_free(before[1]):
            self.keys.valkey_port = free_port()
        if before != (self.keys.postgres_port, self.keys.valkey_port):
            save_keys(self.state, self.keys)


def of(state: State, *, durable: bool = True, without: Container[str] = ()) -> Servers:
    """The embedded servers of a state folder, not started yet.

    `without` names the addresses (DATABASE_URL, REDIS_URL) for which the person has own servers.
    """
    keys = keys_of(state)
    postgres = valkey = None
    if "DATABASE_URL" not in without or "REDIS_URL" not in without:
        account = accounts.current()
        found = programs.found(state.folder / "programs", account)
        if "DATABASE_URL" not in without:
            folder = state.folder / "postgres"
            postgres = Postgres(folder, found.postgres, account, keys, durable)
        if "REDIS_URL" not in without:
            valkey = Valkey(state.folder / "valkey", found.valkey, account, keys)
    return Servers(state, keys, postgres, valkey)
