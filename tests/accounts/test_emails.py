import pytest

from accounts.emails import email_address
from accounts.errors import InvalidInput


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (" Mara@Example.ORG ", "Mara@example.org"),
        ("mara+lists@example.org", "mara+lists@example.org"),
        ("mara@bücher.example", "mara@xn--bcher-kva.example"),
        ("mara@localhost", "mara@localhost"),
    ],
)
def test_an_address_is_kept_as_written_with_its_domain_made_plain(typed: str, kept: str) -> None:
    assert email_address(typed) == kept


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "mara",
        "@example.org",
        "mara@",
        "mara@exa mple.org",
        "mara@example..org",
        "m\u0131ra@example.org",  # a dotless i
        "\u212aarl@example.org",  # the kelvin sign
        "mara\x00@example.org",
        "mara\n@example.org",
        "m" * 250 + "@example.org",
        "mara@" + "e" * 64 + ".org",
    ],
)
def test_what_is_no_address_or_only_looks_like_one_is_refused(typed: str) -> None:
    with pytest.raises(InvalidInput):
        email_address(typed)
