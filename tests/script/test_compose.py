"""docker-compose.yml and Dockerfile against the code, since no docker engine runs here."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from django.urls import resolve
from local import supervise
from local.state import State

from chatapp import serve
from tests.script.conftest import CLONE

COMPOSE: dict[str, Any] = yaml.safe_load((CLONE / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: found for name, found in SERVICES.items() if found["image"] == "recollect"}
DOCKERFILE = (CLONE / "Dockerfile").read_text()
IMAGE_ENV = re.findall(r"^ENV .+?[^\\]$", DOCKERFILE, re.MULTILINE | re.DOTALL)
IMAGE_SETS = dict(re.findall(r"(\w+)=(\S+)", "\n".join(IMAGE_ENV)))
# What the images themselves read.
READ_BY_IMAGES = {
    "postgres": {"POSTGRES_PASSWORD", "POSTGRES_INITDB_ARGS"},
    "valkey": set(),
}


def read_by_the_settings() -> set[str]:
    text = (CLONE / "chatapp" / "settings.py").read_text()
    return set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', text))


def test_every_service_has_its_image() -> None:
    assert SERVICES["postgres"]["image"] == "pgvector/pgvector:pg18"
    assert SERVICES["valkey"]["image"].startswith("valkey/valkey:")
    assert set(OURS) == {"migrate", "web", "worker-interactive", "worker-background", "beat"}


def test_every_variable_is_read_by_somebody() -> None:
    known = read_by_the_settings()
    for name, service in OURS.items():
        assert set(service["environment"]) <= known, name
    roles = (CLONE / "script" / "roles.sql").read_text()
    by_roles = set(re.findall(r"\\getenv \w+ (\w+)", roles))
    assert set(SERVICES["postgres"]["environment"]) == by_roles | READ_BY_IMAGES["postgres"]
    for name in SERVICES["valkey"]["environment"]:
        assert f"$${name}" in SERVICES["valkey"]["command"][-1]


def test_every_setting_that_has_no_default_is_given() -> None:
    text = (CLONE / "chatapp" / "settings.py").read_text()
    required = set(re.findall(r'env\.required\("([A-Z_]+)"\)', text))
    assert required - {"DATABASE_OWNER_URL"} <= set(OURS["web"]["environment"])


def test_commands_are_those_of_script_server() -> None:
    programs = {program.name: program for program in supervise.programs(State(Path("/state")))}
    for service, name in {
        "web": "web",
        "worker-interactive": "interactive",
        "worker-background": "background",
        "beat": "beat",
    }.items():
        module, *arguments = programs[name].arguments[1:]
        command = OURS[service]["command"]
        assert command in (["python", "-m", module, *arguments], [module, *arguments])
        assert importlib.util.find_spec(module) is not None
    assert OURS["migrate"]["command"][:3] == ["python", "manage.py", "migrate"]
    assert (CLONE / "manage.py").exists()


def test_the_port_is_that_of_the_settings() -> None:
    text = (CLONE / "chatapp" / "settings.py").read_text()
    default = int(re.findall(r'env\.whole\("PORT", (\d+)', text)[0])
    assert IMAGE_SETS["PORT"] == str(default)
    assert f"EXPOSE {default}" in DOCKERFILE
    assert OURS["web"]["ports"] == [f"${{BIND:-127.0.0.1}}:${{PORT:-{default}}}:{default}"]
    from local import server

    assert default == server.PORT


def test_the_webs_healthcheck_leads_to_a_page_of_ours() -> None:
    url = re.findall(r"http://[^\"]+", OURS["web"]["healthcheck"]["test"][-1])[0]
    parts = urlsplit(url)
    assert resolve(parts.path).func.__name__ == "healthz"
    assert str(parts.port) == IMAGE_SETS["PORT"]
    assert parts.hostname in OURS["web"]["environment"]["ALLOWED_HOSTS"].split(",")[0]


def test_a_ping_asks_the_worker_that_runs_there() -> None:
    for name in ("interactive", "background"):
        service = OURS[f"worker-{name}"]
        assert f"{name}@$$HOSTNAME" in service["healthcheck"]["test"][-1]
        assert f"{name}@%h" in service["command"]


def test_everything_that_stays_has_a_healthcheck() -> None:
    assert all("healthcheck" in found for name, found in SERVICES.items() if name != "migrate")


def test_only_the_migration_knows_the_owner() -> None:
    for name, service in OURS.items():
        addresses = {key: value for key, value in service["environment"].items() if "URL" in key}
        assert ("DATABASE_OWNER_URL" in addresses) == (name == "migrate")
        user = urlsplit(re.sub(r"\$\{[^}]*}", "x", addresses["DATABASE_URL"])).username
        assert user == "recollect_web"
        assert "POSTGRES_PASSWORD" not in str(service)


def test_addresses_lead_to_services_and_their_ports() -> None:
    expected = {"postgres": ("postgres", 5432), "redis": ("valkey", 6379)}
    for key in ("DATABASE_URL", "REDIS_URL", "DATABASE_OWNER_URL"):
        parts = urlsplit(re.sub(r"\$\{[^}]*}", "x", OURS["migrate"]["environment"][key]))
        assert (parts.hostname, parts.port) == expected[parts.scheme]
        assert parts.hostname in SERVICES


def test_the_database_starts_with_our_roles_and_keeps_its_data() -> None:
    volumes = SERVICES["postgres"]["volumes"]
    assert "postgres:/var/lib/postgresql" in volumes  # Postgres 18's image, not .../data
    mounted = [v for v in volumes if v.startswith("./")]
    assert mounted == ["./script/roles.sql:/docker-entrypoint-initdb.d/10-roles.sql:ro"]
    assert (CLONE / "script" / "roles.sql").exists()
    named = {v.partition(":")[0] for s in SERVICES.values() for v in s["volumes"]}
    assert {name for name in named if not name.startswith(".")} == set(COMPOSE["volumes"])


def test_what_waits_waits_for_something_that_can_be_waited_for() -> None:
    for service in OURS.values():
        for name, condition in service["depends_on"].items():
            if condition["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[name]
            else:
                assert SERVICES[name]["restart"] == "no"


def test_a_model_on_the_host_can_be_reached() -> None:
    assert all(s["extra_hosts"] == ["host.docker.internal:host-gateway"] for s in OURS.values())


def test_no_secret_has_a_default() -> None:
    text = (CLONE / "docker-compose.yml").read_text()
    for name in (
        "SECRET_KEY",
        "FIELD_KEYS",
        "POSTGRES_PASSWORD",
        "WEB_PASSWORD",
        "MIGRATE_PASSWORD",
        "REDIS_PASSWORD",
    ):
        uses = re.findall(rf"\$\{{{name}\b([^}}]*)}}", text)
        assert uses
        assert all(use.startswith(":?") for use in uses)


def test_docker_secrets_prints_every_secret_that_is_demanded() -> None:
    printed = subprocess.run(
        ["sh", CLONE / "docker" / "secrets"], capture_output=True, text=True, check=True
    ).stdout
    values = dict(line.split("=", 1) for line in printed.splitlines() if line[0] != "#")
    demanded = re.findall(r"\$\{(\w+):\?", (CLONE / "docker-compose.yml").read_text())
    assert set(values) == set(demanded)
    assert all(len(value) >= 43 for value in values.values())
    assert len(set(values.values())) == len(values)
    from cryptography.fernet import Fernet

    Fernet(values["FIELD_KEYS"])


def test_the_image_runs_without_rights_and_with_what_it_copies() -> None:
    assert re.search(r"^USER recollect$", DOCKERFILE, re.MULTILINE)
    for source in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((CLONE / name).exists() for name in source.split())
    assert f'CMD ["python", "-m", "{serve.__name__}"]' in DOCKERFILE
    ignored = (CLONE / ".dockerignore").read_text().split()
    assert {".env", ".state", ".venv", ".git"} <= set(ignored)


def test_the_static_files_can_be_collected_while_the_image_is_built(folder: Path) -> None:
    assert not IMAGE_SETS["STATIC_FOLDER"].startswith(IMAGE_SETS["RECOLLECT_STATE"])  # a volume
    run = re.findall(r"^RUN (python -m compileall.+?[^\\])$", DOCKERFILE, re.M | re.S)[0]
    commands = [command.strip() for command in run.replace("\\\n", " ").split("&&")]
    collect = next(command for command in commands if "collectstatic" in command)
    assert DOCKERFILE.index("COPY . .") < DOCKERFILE.index(run)
    subprocess.run(
        ["sh", "-c", f"{collect.replace('python', shlex.quote(sys.executable), 1)}"],
        cwd=CLONE,
        env={"STATIC_FOLDER": str(folder / "collected"), "RECOLLECT_STATE": "/nonexistent"},
        check=True,
    )
    assert (folder / "collected" / "staticfiles.json").exists()


@pytest.mark.parametrize("name", sorted(read_by_the_settings() & set(IMAGE_SETS)))
def test_what_the_image_sets_is_not_set_again(name: str) -> None:
    assert all(name not in service["environment"] for service in OURS.values())
