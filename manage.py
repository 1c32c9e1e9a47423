#!/usr/bin/env python
"""Django's command line; `migrate` runs as the owner of the tables, all else as the application."""

import os
import sys

OWNER_COMMANDS = {"migrate", "makemigrations", "sqlmigrate", "squashmigrations"}


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    if len(sys.argv) > 1 and sys.argv[1] in OWNER_COMMANDS:
        os.environ.setdefault("RECOLLECT_AS", "owner")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
