"""An extractor for the stub: it finds the facts that it is told to find."""

from collections.abc import Callable
from typing import Any

from tests.stub_model import Request


def finds(facts: dict[str, str]) -> Callable[[Request], Any]:
    """Answer extractions: each fact (the value) where the person's words (the key) stand."""

    def extract(request: Request) -> Any:
        found = [
            {"text": fact, "first_person": quote, "quote": quote, "supersedes": ""}
            for quote, fact in facts.items()
            if quote in request.question
        ]
        return {"facts": found}

    return extract
