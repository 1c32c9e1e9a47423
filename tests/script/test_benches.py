"""The benchmarks' sums, and that none of the ways in which tokens go astray escapes them."""

from typing import Any

import orjson
import pytest

from script.benches.rig.client import Sample, Socket
from script.benches.rig.measured import Measured
from script.benches.rig.people import POOL, sentences
from script.benches.rig.stream import text_of
from script.benches.rig.tally import (
    Faults,
    Target,
    answer,
    faults,
    line,
    meant,
    numbered,
    percentile,
    table,
    words,
)
from tests.stub_model import Reply, Request, tokens_of

ONE, TWO, THREE, FOUR = meant("t1", 4)
SAID = {"role": "user", "content": "t77 what do I like?"}
STRANGE = meant("t2", 4)[0]
WHOLE = f"{ONE} {TWO} {THREE} {FOUR} "


def test_a_percentile_lies_between_neighbours() -> None:
    assert percentile([30, 10, 20, 40], 50) == 25
    assert percentile([5], 95) == 5
    assert percentile(range(101), 95) == 95
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_a_line_is_fitted_through_cost_and_tokens() -> None:
    fixed, each = line([(20, 35), (200, 80)])
    assert (round(fixed, 6), round(each, 6)) == (30, 0.25)
    with pytest.raises(ValueError, match="two different"):
        line([(20, 35), (20, 36)])


def test_a_whole_answer_has_no_fault() -> None:
    assert answer("t1", 4) == WHOLE
    assert faults(WHOLE, tag="t1", tokens=4) == Faults(expected=4)
    assert faults(WHOLE, tag="t1", tokens=4).none


def test_sixty_people_share_no_token() -> None:
    assert len({token for number in range(60) for token in meant(f"t{number}", 200)}) == 12_000
    assert len(set(words())) == len(words())


def test_the_stub_says_what_is_meant() -> None:
    request = Request("POST", "/v1/chat/completions", {}, {"messages": [SAID]})
    said = tokens_of(Reply(count=200, words=words()), request)
    assert "".join(said) == answer("t77", 200)


@pytest.mark.parametrize(
    ("received", "fault"),
    [
        ("", {"lost": 4}),
        (f"{ONE} {TWO} {FOUR} ", {"lost": 1}),
        (f"{ONE} {TWO} {THREE} ", {"lost": 1}),
        (f"{ONE} {TWO} {TWO} {THREE} {FOUR} ", {"doubled": 1}),
        (f"{ONE} {THREE} {TWO} {FOUR} ", {"reordered": 1}),
        (f"{ONE} {TWO} {STRANGE} {THREE} {FOUR} ", {"mixed": 1}),
        (f"{ONE} {STRANGE} {THREE} {FOUR} ", {"mixed": 1, "lost": 1}),
        (f"{ONE} {TWO} {THREE[:2]} {FOUR} ", {"mixed": 1, "lost": 1}),
        (f"{ONE} {TWO}  {THREE} {FOUR} ", {"altered": 1}),
        (WHOLE.strip(), {"altered": 1}),
    ],
)
def test_each_way_to_go_astray_is_counted(received: str, fault: dict[str, int]) -> None:
    found = faults(received, tag="t1", tokens=4)
    assert found == Faults(expected=4, **fault)
    assert not found.none


def test_faults_add_up() -> None:
    total = Faults(expected=4, lost=1) + Faults(expected=4, mixed=2)
    assert total == Faults(expected=8, lost=1, mixed=2)


def test_frames_out_of_turn_are_counted() -> None:
    assert numbered([(1, "a"), (2, "b"), (3, "c")]) == ("abc", 0)
    assert numbered([(1, "a"), (3, "c")]) == ("ac", 1)
    assert numbered([(1, "a"), (1, "a"), (2, "b")]) == ("aab", 2)


def heard(*frames: dict[str, Any]) -> Sample:
    """Return what a person makes of these frames."""
    socket, sample = Socket("ws://127.0.0.1/", "t1", "t1 asks"), Sample("t1")
    for place, frame in enumerate(frames):
        socket.read(sample, orjson.dumps(frame), 0.05 + place / 100)
    return sample


def delta(number: int, text: str) -> dict[str, Any]:
    return {"type": "delta", "reply": "r", "n": number, "text": text}


FINISHED = {"type": "finished", "reply": "r", "n": 4, "status": "complete"}
RECALLED = {"type": "recalled", "reply": "r", "n": 1, "count": 3}


def test_a_reply_is_put_together_from_its_frames() -> None:
    sample = heard(RECALLED, delta(2, f"{ONE} {TWO} "), delta(3, f"{THREE} {FOUR} "), FINISHED)
    measured = Measured("daphne", people=1, tokens=4)
    measured.add([sample], floor=50.0)
    assert measured.faults.none
    assert measured.errors == []
    assert measured.out_of_turn == 0
    assert measured.first == [pytest.approx(60)]
    assert measured.added == [pytest.approx(10)]


def test_a_snapshot_stands_for_the_frames_before_it() -> None:
    snapshot = {"type": "snapshot", "reply": "r", "n": 2, "text": f"{ONE} {TWO} "}
    sample = heard(delta(1, f"{ONE} "), snapshot, delta(3, f"{THREE} {FOUR} "), FINISHED)
    measured = Measured("daphne", people=1, tokens=4)
    measured.add([sample], floor=None)
    assert measured.faults.none
    assert measured.out_of_turn == 0


@pytest.mark.parametrize(
    "frames",
    [
        [delta(1, f"{ONE} {TWO} "), delta(3, f"{FOUR} "), FINISHED],
        [
            delta(1, f"{ONE} {TWO} "),
            delta(1, f"{ONE} {TWO} "),
            delta(2, f"{THREE} {FOUR} "),
            FINISHED,
        ],
        [delta(2, f"{THREE} {FOUR} "), delta(1, f"{ONE} {TWO} "), FINISHED],
        [delta(1, f"{ONE} {STRANGE} "), delta(2, f"{THREE} {FOUR} "), FINISHED],
        [delta(1, WHOLE), FINISHED | {"status": "interrupted"}],
        [delta(1, WHOLE), {"type": "error", "code": "error", "message": "no"}],
    ],
)
def test_a_fault_on_the_wire_reaches_the_report(frames: list[dict[str, Any]]) -> None:
    measured = Measured("daphne", people=1, tokens=4)
    measured.add([heard(*frames)], floor=50.0)
    assert not measured.faults.none or measured.errors


def test_cpu_is_counted_without_what_is_used_at_rest() -> None:
    measured = Measured("daphne", people=2, tokens=4, replies=2)
    before, after = {"web": 1.0, "workers": 5.0}, {"web": 1.1, "workers": 5.2}
    measured.spend(before, after, {"web": 0.01, "workers": 0.05}, seconds=2.0)
    assert measured.cpu_a_reply == pytest.approx((100 - 20 + 200 - 100) / 2)


def test_a_target_is_met_up_to_its_limit() -> None:
    assert Target("delay", 40.0, 40.0).met
    missed = Target("delay", 40.1, 40.0)
    assert not missed.met
    assert "MISSED  delay: 40.10 ms (at most 40)" in missed.shown()


def test_a_table_is_aligned() -> None:
    shown = table(["what", "ms"], [["first", 1.234], ["second thing", 1234.5], ["third", None]])
    assert shown.splitlines() == [
        "what               ms",
        "------------  -------",
        "first            1.23",
        "second thing  1,234.5",
        "third",
    ]


def test_people_say_different_things() -> None:
    said = sentences(POOL)
    assert len(set(said)) == POOL
    assert sentences(POOL) == said
    assert len(sentences(20_000)) == 20_000


def test_an_event_without_text_adds_none() -> None:
    assert text_of(b'{"choices":[{"delta":{"content":"hi "}}]}') == "hi "
    assert text_of(b'{"choices":[{"delta":{"role":"assistant","content":null}}]}') == ""
    assert text_of(b'{"choices":[],"usage":{}}') == ""
