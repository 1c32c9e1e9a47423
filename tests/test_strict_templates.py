"""The check of the templates itself: it hears what is missing and lets pass what may be."""

from typing import Any

import pytest
from django.http import QueryDict
from django.template import Context, Engine

from tests.strict_templates import NotGiven, optional

ENGINE = Engine()


def drawn(text: str, **given: Any) -> str:
    return ENGINE.from_string(text).render(Context(given))


@pytest.mark.parametrize(
    "text",
    [
        "{{ mispelt }}",
        "{{ mispelt|default:'x' }}",
        "{{ reply.mispelt }}",
        "{% if mispelt %}x{% endif %}",
        "{% if reply.mispelt %}x{% endif %}",
        "{% for one in mispelt %}x{% endfor %}",
        "{% firstof mispelt 'x' %}",
        "{% with x=reply.mispelt %}{{ x }}{% endwith %}",
    ],
)
def test_a_name_that_is_not_given_is_an_error(text: str) -> None:
    with pytest.raises(NotGiven, match="mispelt"):
        drawn(text, reply={"text": "Hello"})


@pytest.mark.parametrize(
    "text",
    [
        "{{ reply.text }}",
        "{% if nobody.name %}x{% endif %}",
        "{% if sent.group %}x{% endif %}",
        "{{ empty|default:'x' }}",
    ],
)
def test_a_name_that_is_given_is_none(text: str) -> None:
    drawn(text, reply={"text": "Hello"}, nobody=None, sent=QueryDict(), empty="")


def test_what_may_be_missing_stands_in_the_first_line() -> None:
    assert {"error", "draft"} <= optional("memory/add_form.html")
    assert "memories" not in optional("memory/page.html")
    assert optional("no/such/template.html") == frozenset()
