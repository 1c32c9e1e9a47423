"""Rules of this house that no linter knows, each proved on a good and a bad line."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("accounts", "memory", "chatapp")


@dataclass(frozen=True)
class Rule:
    """What may not stand in the code, where it may, and a line of each sort."""

    name: str
    pattern: str
    good: str
    bad: str
    but_in: tuple[str, ...] = ()


RULES = (
    Rule(
        "rows of people are reached through within(scope)",
        r"\.unscoped\b",
        good="Memory.objects.within(scope).live()",
        bad="Memory.unscoped.filter(user=user)",
        # The review role's policies show a tenant's rows; there is no single owner to name.
        but_in=("chatapp/people.py",),
    ),
    Rule(
        "the async ORM enters no scope",
        r"\.(aget|afirst|acreate|asave|aupdate|adelete|acount|aexists|aget_or_create)\(",
        good="await database_sync_to_async(read)(scope)",
        bad="await Memory.objects.aget(pk=1)",
    ),
    Rule(
        "no ambient identity",
        r"\b(ContextVar|threading\.local|get_current_user)\b",
        good="def recall(scope: Scope) -> Recall:",
        bad="current = ContextVar('user')",
    ),
    Rule(
        "text of people is never logged",
        r"\blogger\.\w+\((f['\"]|['\"][^'\"]*['\"][^)]*\b(text|prompt|content|question|messages)\b)",
        good='logger.info("reply %s ended: %s", reply.pk, status)',
        bad='logger.info("asked %s", message.text)',
    ),
    Rule(
        "what is marked safe comes from the one sanitiser",
        r"\b(mark_safe|SafeString)\(",
        good="html = render(text)",
        bad="html = mark_safe(text)",
        but_in=("chatapp/markdown.py",),
    ),
    Rule(
        "a layer's group is told from the loop, never through async_to_sync in a stream",
        r"async_to_sync\(.*group_send",
        good="await layer.group_send(group, event)",
        bad="async_to_sync(layer.group_send)(group, event)",
        but_in=("chatapp/bells.py",),
    ),
)


def sources() -> list[Path]:
    return [
        path
        for package in PRODUCT
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_knows_good_from_bad(rule: Rule) -> None:
    assert re.search(rule.pattern, rule.bad)
    assert not re.search(rule.pattern, rule.good)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_house_keeps_its_rule(rule: Rule) -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources()
        if path.relative_to(ROOT).as_posix() not in rule.but_in
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(rule.pattern, line)
    ]
    assert broken == []


@pytest.mark.parametrize("name", ["services", "selectors", "utils", "helpers", "manager", "common"])
def test_no_module_is_a_drawer_for_everything(name: str) -> None:
    assert not [path for path in sources() if path.stem == name]


def test_templates_hold_no_inline_script_style_or_foreign_address() -> None:
    pattern = re.compile(
        r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=|(?:src|href)=\"(?:https?:)?//", re.I
    )
    broken = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert broken == []


def test_every_file_that_the_papers_point_to_is_there() -> None:
    papers = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{paper.relative_to(ROOT)}: {target}"
        for paper in papers
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", paper.read_text(encoding="utf-8"))
        if not (paper.parent / target).exists()
    ]
    assert broken == []


def test_every_variable_that_the_readme_names_is_one_that_is_read() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("## Settings") : readme.index("With docker:")]
    named = set(re.findall(r"`([A-Z][A-Z_]+)`", table))
    read = set(
        re.findall(
            r"\"([A-Z][A-Z_]+)\"",
            "".join(
                (ROOT / "chatapp" / name).read_text(encoding="utf-8")
                for name in ("settings.py", "environment.py")
            ),
        )
    )
    assert named
    assert named - read == set()
