from datetime import date

import pytest

from memory.days import Days, days_named

TODAY = date(2026, 11, 30)  # a Monday


def named(text: str) -> list[tuple[str, str]]:
    return [(str(one.first), str(one.last)) for one in days_named(text, today=TODAY)]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("What was on 2023-05-08?", "2023-05-08", "2023-05-08"),
        ("What was on 8 May 2023?", "2023-05-08", "2023-05-08"),
        ("What was on May 8th, 2023?", "2023-05-08", "2023-05-08"),
        ("On the 8th of May", "2026-05-08", "2026-05-08"),
        ("On December 24", "2025-12-24", "2025-12-24"),
        ("Was war am 8.5.2023?", "2023-05-08", "2023-05-08"),
        ("Was war am 8. März 2023?", "2023-03-08", "2023-03-08"),
        ("le 1er août 2024", "2024-08-01", "2024-08-01"),
        ("el 5 de mayo de 2023", "2023-05-05", "2023-05-05"),
        ("Where was I in May 2023?", "2023-05-01", "2023-05-31"),
        ("Where was I in March?", "2026-03-01", "2026-03-31"),
        ("Where was I in December?", "2025-12-01", "2025-12-31"),
        ("Where was I in February 2024?", "2024-02-01", "2024-02-29"),
        ("What changed in 2022?", "2022-01-01", "2022-12-31"),
        ("What did I eat yesterday?", "2026-11-29", "2026-11-29"),
        ("Was habe ich gestern gegessen?", "2026-11-29", "2026-11-29"),
        ("昨日は何を食べた？", "2026-11-29", "2026-11-29"),
        ("What did I do last week?", "2026-11-23", "2026-11-29"),
        ("Was war letzte Woche?", "2026-11-23", "2026-11-29"),
        ("last weekend", "2026-11-28", "2026-11-29"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("this month", "2026-11-01", "2026-11-30"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("last Monday", "2026-11-23", "2026-11-23"),
        ("on Friday", "2026-11-27", "2026-11-27"),
        ("three days ago", "2026-11-27", "2026-11-27"),
        ("2 months ago", "2026-09-01", "2026-09-30"),
        ("a year ago", "2025-01-01", "2025-12-31"),
    ],
)
def test_a_text_names_days(text: str, first: str, last: str) -> None:
    assert named(text) == [(first, last)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What may I eat in the morning?",
        "I march on",
        "on the 31 June",
        "2023-13-45",
        "0000-00-00",
        "It cost 2023 euros",
        "marching in mayhem",
        "room 5 maybe",
    ],
)
def test_a_text_names_no_day(text: str) -> None:
    assert named(text) == []


def test_a_range_is_looked_up_by_its_days_or_by_its_months() -> None:
    week = Days(date(2026, 11, 23), date(2026, 11, 29))
    assert week.names()[0] == "@2026-11-23"
    assert len(week.names()) == 7
    assert Days(date(2024, 2, 1), date(2024, 2, 29)).names() == ["@2024-02"]
    assert len(Days(date(2025, 1, 1), date(2025, 12, 31)).names()) == 12
    assert date(2026, 11, 29) in week
    assert date(2026, 11, 30) not in week


def test_two_dates_are_two_ranges_and_one_said_twice_is_one() -> None:
    assert len(named("between 3 May 2023 and 9 June 2023")) == 2
    assert len(named("on 3 May 2023, yes 2023-05-03")) == 1
