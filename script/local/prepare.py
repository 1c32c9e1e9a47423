"""`python -m local.prepare [--unchanged]`: what has to be done with Django at a start.

Run as the application, with a database that may be empty. Migrates as the owner if something is
to be migrated, refuses behind a wall that does not stand, collects the static files, and prints the
one-time link if the installation has no operator yet. With --unchanged the processes run already:
then only what they do not need is done.
"""

import os
import subprocess
import sys

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from local.state import CLONE


def main() -> None:
    """Do all of it; a refusal is a sentence on standard error and exit code 1."""
    unchanged = sys.argv[1:] == ["--unchanged"]
    try:
        django.setup()
        if not unchanged and to_migrate():
            migrate()
        from accounts.wall import check_role

        check_role()
        if not unchanged:
            collect()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
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


def collect() -> None:
    """Put the static files, under the names with which they are served, into the state folder."""
    try:
        call_command("collectstatic", clear=True, interactive=False, verbosity=0)
    except OSError as error:
        sys.exit(f"The static files could not be collected: {error}.")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    main()
