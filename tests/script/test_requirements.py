"""The compiled requirements are held against what they are compiled from, without a network."""

from pathlib import Path

import pytest
from local import requirements

from tests.script.conftest import CLONE

PINS = """\
Django==6.1.3 \\
    --hash=sha256:aa
    # via -r some.in
sqlparse==0.5 ; python_version >= '3.12' \\
    --hash=sha256:bb
    # via
    #   django
psycopg[binary,pool]==3.3.9 \\
    --hash=sha256:cc
    # via
    #   -r some.in
    #   other
"""
ASKED = "# why\ndjango>=6.1,<6.2\npsycopg[binary,pool]>=3.3\n"


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_ours_are_up_to_date(name: str) -> None:
    assert requirements.faults(CLONE, name) == []


def test_ours_agree_with_each_other() -> None:
    assert requirements.disagreements(CLONE, "requirements", "requirements-dev") == []


@pytest.mark.parametrize(
    ("asked", "pins", "fault"),
    [
        (ASKED, PINS, None),
        (ASKED + "celery>=5\n", PINS, "some.txt lacks celery>=5"),
        (ASKED.replace("6.1,", "6.1.4,"), PINS, "pins django 6.1.3, not django<6.2,>=6.1.4"),
        ("django>=6.1\n", PINS, "still has psycopg, which some.in no longer names"),
        (ASKED, PINS.replace("    --hash=sha256:bb\n", ""), "has no hash for sqlparse"),
    ],
)
def test_each_fault_is_named(folder: Path, asked: str, pins: str, fault: str | None) -> None:
    (folder / "some.in").write_text(asked)
    (folder / "some.txt").write_text(pins)
    found = requirements.faults(folder, "some")
    if fault is None:
        assert found == []
    else:
        assert len(found) == 1
        assert fault in found[0]
        assert "script/fix --requirements" in found[0]
