import pytest
from django.test import RequestFactory
from pytest_django import Settings

from accounts.client import client_ip, client_network


@pytest.mark.parametrize(
    ("proxies", "forwarded", "seen"),
    [
        (0, "", "10.0.0.9"),
        (0, "203.0.113.5", "10.0.0.9"),  # what a browser claims means nothing
        (1, "203.0.113.5", "203.0.113.5"),
        (1, "1.2.3.4, 203.0.113.5", "203.0.113.5"),
        (2, "1.2.3.4, 203.0.113.5, 10.0.0.8", "203.0.113.5"),
        (2, "203.0.113.5", "10.0.0.9"),
        (1, "nonsense", None),
    ],
)
def test_the_address_is_what_our_own_proxies_saw(
    settings: Settings, proxies: int, forwarded: str, seen: str | None
) -> None:
    settings.TRUSTED_PROXIES = proxies
    request = RequestFactory().get(
        "/", REMOTE_ADDR="10.0.0.9", headers={"X-Forwarded-For": forwarded}
    )
    assert client_ip(request) == seen


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.5", "203.0.113.5"),
        ("::ffff:203.0.113.5", "203.0.113.5"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::2", "2001:db8:1:2::/64"),
        ("", "unknown"),
    ],
)
def test_tries_are_counted_by_the_network_that_one_household_has(
    address: str, network: str
) -> None:
    assert client_network(RequestFactory().get("/", REMOTE_ADDR=address)) == network
