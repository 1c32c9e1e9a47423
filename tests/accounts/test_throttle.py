from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from accounts.errors import TooMuch
from accounts.models import Attempt
from accounts.throttle import LONGEST, Limit, Try, forget, sweep, take, too_much
from tests.accounts.conftest import at_once

THREE = Limit("test", 3, 600)
TEN = Limit("test, all", 10, 600)
MARA = Try(THREE, "mara")
BOB = Try(THREE, "bob")


def let_pass(seconds: float) -> None:
    Attempt.objects.update(at=F("at") - timedelta(seconds=seconds))


@pytest.mark.django_db
def test_so_many_tries_are_let_through_and_no_more() -> None:
    for _number in range(3):
        take(MARA)
    with pytest.raises(TooMuch) as refused:
        take(MARA)
    assert 590 < refused.value.retry_after <= 600
    take(BOB)


@pytest.mark.django_db
def test_a_refused_try_does_not_make_the_wait_longer() -> None:
    for _number in range(3):
        take(MARA)
    let_pass(590)
    with pytest.raises(TooMuch) as refused:
        take(MARA)
    assert refused.value.retry_after <= 10
    assert Attempt.objects.count() == 3
    let_pass(11)
    take(MARA)


@pytest.mark.django_db
def test_a_try_is_counted_under_each_limit_or_under_none() -> None:
    for _number in range(3):
        take(MARA, Try(TEN, "home"))
    with pytest.raises(TooMuch):
        take(MARA, Try(TEN, "home"))
    assert Attempt.objects.filter(key=Try(TEN, "home").key).count() == 3


@pytest.mark.django_db
def test_tries_given_back_count_no_longer() -> None:
    take(MARA)
    taken = take(MARA, Try(TEN, "home"))
    taken.give_back()
    assert Attempt.objects.count() == 1
    forget(MARA)
    assert not Attempt.objects.exists()


@pytest.mark.django_db
def test_nobody_reads_out_of_the_store_who_tried() -> None:
    take(MARA)
    key = Attempt.objects.get().key
    assert len(key) == 64
    assert "mara" not in key
    assert key != Try(TEN, "mara").key


@pytest.mark.django_db
def test_the_sweep_takes_what_no_limit_looks_at_any_more() -> None:
    take(MARA)
    let_pass(LONGEST.total_seconds() + 1)
    take(BOB)
    assert sweep() == 1
    assert Attempt.objects.get().key == BOB.key


@pytest.mark.django_db(transaction=True)
def test_tries_that_come_at_once_do_not_slip_through_together() -> None:
    network = Try(TEN, "home")
    results = at_once(*[lambda: take(MARA, network)] * 8)
    assert sum(isinstance(result, TooMuch) for result in results) == 5
    assert Attempt.objects.filter(key=MARA.key).count() == 3


@pytest.mark.django_db(transaction=True)
def test_two_who_share_limits_in_another_order_do_not_wait_for_each_other() -> None:
    network = Try(TEN, "home")
    results = at_once(
        *[lambda: take(MARA, network), lambda: take(network, MARA)] * 2,
    )
    assert not [r for r in results if isinstance(r, Exception) and not isinstance(r, TooMuch)]


@pytest.mark.parametrize(
    ("wait", "sentence"),
    [
        (0.2, "Too many tries. Try again in 1 second."),
        (42, "Too many tries. Try again in 42 seconds."),
        (60, "Too many tries. Try again in 1 minute."),
        (61, "Too many tries. Try again in 2 minutes."),
    ],
)
def test_the_wait_is_told_in_words(wait: float, sentence: str) -> None:
    assert str(too_much(wait)) == sentence


@pytest.mark.django_db
def test_a_limit_is_reached_again_only_by_tries_within_its_window() -> None:
    take(MARA)
    let_pass(300)
    take(MARA)
    take(MARA)
    let_pass(301)
    take(MARA)
    with pytest.raises(TooMuch) as refused:
        take(MARA)
    assert refused.value.retry_after <= 300
    assert Attempt.objects.filter(at__lt=timezone.now() - timedelta(seconds=600)).count() == 1
