"""`python -m local.prepare`: what has to be done with Django before the processes start.

Run as the application, with a database that may be empty. Migrates as the owner if something is
to be migrated, refuses behind a wall that does not stand, gathers the static files where the
settings want that, and prints the one-time link if the installation has no operator yet.
"""

import os
import subprocess
import sys

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command, get_commands
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from local.state import CLONE


def main() -> None:
    """Do all of it; a refusal is a sentence on standard error and exit code 1."""
    try:
        django.setup()
        if to_migrate():
            migrate()
        from accounts.wall import check_role

        check_role()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    if "first_link" in get_commands():
        call_command("first_link")


def to_migrate() -> bool:
    """Whether the database lacks a migration; also where it does not let us look."""
    try:
        executor = MigrationExecutor(connection)
        return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except DatabaseError:
        return True
    finally:
        connection.close()


def migrate() -> None:
    """Migrate in a process of its own: it logs in as the owner."""
    command = [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity", "0"]
    if subprocess.run(command, cwd=CLONE, check=False).returncode:
        sys.exit("The migrations failed: see above. Nothing of the failed one was kept.")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    main()
