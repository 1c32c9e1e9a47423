"""Day words are dates of the calendar where somebody is; what is not sure stays as it was said."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memory.dates import day_start, named_days, other_days, tells_time, with_dates

SHANGHAI = ZoneInfo("Asia/Shanghai")
AT = datetime(2026, 3, 1, 17, 30, tzinfo=UTC).astimezone(SHANGHAI)  # there it is the 2nd


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("Tomorrow I fly to Rome.", "On 2026-03-03 I fly to Rome."),
        ("The user flies to Rome tomorrow.", "The user flies to Rome on 2026-03-03."),
        ("The user flew yesterday morning.", "The user flew on 2026-03-01 in the morning."),
        ("An exam the day after tomorrow", "An exam on 2026-03-04"),
        ("It is in 3 days", "It is on 2026-03-05"),
        ("I began two weeks ago", "I began on 2026-02-16"),
        ("Ich fliege morgen nach Rom.", "Ich fliege am 2026-03-03 nach Rom."),
        ("Je pars demain.", "Je pars le 2026-03-03."),
        ("Mañana vuelo a Roma", "El 2026-03-03 vuelo a Roma"),
        ("明天我飞罗马", "2026-03-03我飞罗马"),
    ],
)
def test_a_day_word_is_its_date_where_the_person_is(said: str, dated: str) -> None:
    assert with_dates(said, AT) == dated


@pytest.mark.parametrize(
    "said",
    [
        "Ich jogge am Morgen.",
        "corro por la mañana",
        "Das ist hier gut.",
        "Remember tomorrow's meeting",
        "I meet them next Friday",
        "I live in a house",
    ],
)
def test_what_may_mean_something_else_stays(said: str) -> None:
    assert with_dates(said, AT) == said


def test_a_date_that_the_statement_does_not_name_is_another_day() -> None:
    said = "Tomorrow I fly to Rome."
    assert other_days("The user flies to Rome on 2026-03-02.", said, AT)
    assert not other_days("The user flies to Rome on 2026-03-03.", said, AT)
    assert not other_days("The user flies to Rome.", said, AT)


def test_nothing_is_certain_beside_other_words_of_time() -> None:
    said = "Tomorrow I fly to Rome, and back next Monday."
    assert named_days(said, AT) is None
    assert not other_days("The user flies back on 2026-03-09.", said, AT)


def test_without_a_word_of_time_there_is_no_date() -> None:
    assert not tells_time("I live in Oslo.", AT)
    assert tells_time("Until June I live in Oslo.", AT)


@pytest.mark.parametrize(
    "given", ["", "June", "2026-13-01", "2026-02-30", "1026-01-01", "9999-01-01"]
)
def test_no_plausible_day_is_none(given: str) -> None:
    assert day_start(given, said_at=AT, zone=SHANGHAI) is None


def test_a_day_begins_at_midnight_there() -> None:
    begins = day_start("2026-06-01", said_at=AT, zone=SHANGHAI)
    assert begins is not None
    assert begins.astimezone(UTC) == datetime(2026, 5, 31, 16, tzinfo=UTC)
