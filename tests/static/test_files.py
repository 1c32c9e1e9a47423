"""The templates, styles and modules agree with each other: what one names, another has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.template.loader import get_template

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
MODULES = sorted((ROOT / "static" / "js").glob("*.js"))
STYLES = sorted((ROOT / "static" / "css").glob("*.css"))

HEX = re.compile(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)")
READ_ON = {
    "ink": ("paper", "paper-side", "paper-raised", "paper-sunk", "bubble", "hover", "active"),
    "ink-soft": ("paper", "paper-side", "paper-raised", "paper-sunk", "bubble", "hover", "active"),
    "ink-faint": ("paper", "paper-side", "paper-raised", "paper-sunk"),
    "memory": ("paper", "paper-side", "paper-raised", "memory-soft", "hover", "active"),
    "danger": ("paper", "paper-raised", "paper-sunk", "danger-soft"),
    "on-primary": ("primary",),
    "on-danger": ("danger",),
    "code-keyword": ("code-back",),
    "code-string": ("code-back",),
    "code-number": ("code-back",),
    "code-name": ("code-back",),
    "code-comment": ("code-back",),
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_every_template_compiles_and_says_what_it_expects(path: Path) -> None:
    get_template(str(path.relative_to(ROOT / "templates")))
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("{#") or first == "<!doctype html>"


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_every_static_file_that_a_template_names_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"{% static ['\"]([^'\"]+)['\"] %}", text)
    named += re.findall(r"(?:href|src)=\"/static/([^\"]+)\"", text)
    assert [file for file in named if finders.find(file) is None] == []


def test_every_icon_that_is_named_is_in_the_sprite() -> None:
    sprite = (ROOT / "static" / "icons.svg").read_text(encoding="utf-8")
    drawn = set(re.findall(r'<symbol id="([\w-]+)"', sprite))
    named: set[str] = set()
    for path in TEMPLATES:
        for use in re.findall(r"<use href=\"(.*?)\"></use>", path.read_text(encoding="utf-8")):
            named.update(re.findall(r"#([a-z]+)", use.split("icons.svg' %}", 1)[1]))
    for path in MODULES:
        named.update(re.findall(r'\bicon\("([\w-]+)"\)', path.read_text(encoding="utf-8")))
    assert named - drawn == set()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_imports_what_another_exports(path: Path) -> None:
    missing = []
    imports = re.findall(
        r'^import \{([^}]+)\} from "\./([\w-]+\.js)";', path.read_text(encoding="utf-8"), re.M
    )
    for names, file in imports:
        exported = (path.parent / file).read_text(encoding="utf-8")
        for imported in names.split(","):
            word = re.escape(imported.strip())
            if not re.search(
                rf"^export (?:async )?(?:function|class|const) {word}(?![\w$])", exported, re.M
            ):
                missing.append(f"{imported.strip()} from {file}")
    assert missing == []


def test_every_module_is_fetched_at_once_and_not_one_after_the_other() -> None:
    base = (ROOT / "templates" / "base.html").read_text(encoding="utf-8")
    preloaded = re.findall(r"rel=\"modulepreload\" href=\"{% static 'js/([^']+)' %}\"", base)
    assert preloaded == [
        path.name for path in MODULES if path.stem not in {"app", "at-end", "theme-now"}
    ]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_module_needs_what_the_policy_forbids(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(
        r"\beval\(|new Function\(|setAttribute\(\"style\"|https?://",
        text.replace("http://www.w3.org/2000/svg", ""),
    )


def test_every_property_that_is_used_is_defined() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in STYLES)
    used = set(re.findall(r"var\(--([\w-]+)", text))
    defined = set(re.findall(r"^\s*--([\w-]+):", text, re.M))
    assert used - defined == set()
    assert defined - used == set()


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def pairs() -> Iterator[tuple[str, str, float]]:
    for ink, grounds in READ_ON.items():
        yield from ((ink, ground, 4.5) for ground in grounds)
    for line in ("field-line", "focus"):
        yield from ((line, ground, 3.0) for ground in ("paper", "paper-side", "paper-raised"))


@pytest.mark.parametrize(("ink", "ground", "least"), list(pairs()))
def test_both_themes_have_enough_contrast(ink: str, ground: str, least: float) -> None:
    tokens = (ROOT / "static" / "css" / "tokens.css").read_text(encoding="utf-8")
    colours = {match[1]: (match[2], match[3]) for match in HEX.finditer(tokens)}
    for theme in (0, 1):
        assert contrast(colours[ink][theme], colours[ground][theme]) >= least
