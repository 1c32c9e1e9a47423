"""Markdown as safe HTML: of a whole text, or piece by piece while it streams.

`render` gives the HTML of a whole text. `Blocks` gives the same HTML in pieces: what is finished
once, the open block each time it is drawn. Text between the pieces is put into its place by
Markdown's own rules: a top-level block is over when the next one has begun on a whole line.
Definitions that could change an earlier block (`[name]: address`) are no part of this Markdown.

There is one sanitiser (nh3), behind a parser that lets no HTML through. No images: an address that
the browser fetches by itself is how text of a model leaks what it was told.
"""

import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.tasklists import tasklists_plugin
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

DRAW_SECONDS = 0.2
# A long open block is drawn less often: each drawing sends all of it again.
DRAW_CHARS_A_SECOND = 40_000
# Some texts take a parser long (20,000 brackets in a paragraph): drawing gets no more of the time.
DRAW_SHARE = 0.02
HIGHLIGHT_CHARS = 20_000
CACHED_CHARS = 20_000

_SCHEMES = ("http://", "https://", "mailto:")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,32}")


class _Renderer(RendererHTML):
    """Links that say where they lead, and code with classes for its colours."""

    def link_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return self.renderToken(tokens, index, options, env)

    def link_close(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        opened = index - 1
        while tokens[opened].type != "link_open":
            opened -= 1
        address = str(tokens[opened].attrs.get("href", ""))
        words = "".join(token.content for token in tokens[opened + 1 : index])
        place = _place(address)
        if not place or _names(words, place):
            return "</a>"
        return f'</a> <span class="link-host">({escape(place)})</span>'

    def fence(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        token = tokens[index]
        named = _LANGUAGE.match(token.info.strip())
        return _code(token.content, named.group() if named else "")

    def code_block(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return _code(tokens[index].content, "")


def _place(address: str) -> str:
    """Return the host, or the mailbox, that a link leads to."""
    try:
        parts = urlsplit(address)
        return parts.path if parts.scheme == "mailto" else (parts.hostname or "")
    except ValueError:
        return address


def _names(words: str, place: str) -> bool:
    """Tell whether a link's own words already are this address, or begin with it."""
    words = words.strip().lower()
    for scheme in _SCHEMES:
        words = words.removeprefix(scheme)
    rest = words.removeprefix(place.lower())
    return rest != words and (not rest or rest[0] in "/?#" or bool(re.match(r":\d+(/|$)", rest)))


def _code(content: str, language: str) -> str:
    coloured = _coloured(content, language)
    kind = f' class="language-{escape(language)}"' if language else ""
    return f"<pre><code{kind}>{coloured}</code></pre>\n"


_formatter = HtmlFormatter[str](nowrap=True, classprefix="hl-")


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _coloured(content: str, language: str) -> str:
    lexer = _lexer(language.lower()) if language else None
    if lexer is None or len(content) > HIGHLIGHT_CHARS:
        return escape(content)
    from pygments import highlight

    coloured = highlight(content, lexer, _formatter)
    # The formatter ends the last line even where the text does not.
    return coloured if content.endswith("\n") else coloured.removesuffix("\n")


def _may_lead(address: str) -> bool:
    return address.lower().startswith(_SCHEMES)


# Where a rule may begin: with no others the text runs on (the parser's own rule stops at each of
# thirty characters, which costs four times as much).
_PLAIN = re.compile(r"[^\n\\`~*_\[\]<&:]+")


def _text(state: StateInline, silent: bool) -> bool:
    match = _PLAIN.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.pending += match.group()
    state.pos = match.end()
    return True


def _may_hold_links(text: str) -> bool:
    return "://" in text or "mailto:" in text.lower()


def _parser() -> MarkdownIt:
    parser = MarkdownIt(
        "commonmark", {"html": False, "linkify": True}, renderer_cls=_Renderer
    ).enable(["table", "strikethrough", "linkify"])
    parser.disable(["reference", "image", "html_block", "html_inline"])
    parser.inline.ruler.at("text", _text)
    parser.use(tasklists_plugin)
    # markdown-it's own way to say which links may be is a method that is replaced on the instance,
    # which its types do not foresee.
    parser.validateLink = _may_lead  # type: ignore[method-assign, assignment]
    if parser.linkify is not None:
        parser.linkify.set({"fuzzy_link": False, "fuzzy_ip": False, "fuzzy_email": False})
        parser.linkify.add("ftp:", None).add("//", None)
        # Its own look costs more than all the rest of a paragraph.
        parser.linkify.pretest = _may_hold_links
    return parser


_markdown = _parser()
_cleaner = nh3.Cleaner(
    tags={
        *("p", "br", "hr", "h3", "h4", "h5", "h6", "blockquote", "pre", "code"),
        *("ul", "ol", "li", "strong", "em", "s", "a", "span", "input"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    },
    clean_content_tags={"script", "style"},
    attributes={
        "a": {"href", "title"},
        "code": {"class"},
        "span": {"class"},
        "ol": {"start"},
        "input": {"disabled", "checked"},
    },
    tag_attribute_values={
        "input": {"type": {"checkbox"}},
        "th": {"class": {"right", "center"}},
        "td": {"class": {"right", "center"}},
    },
    set_tag_attribute_values={"a": {"target": "_blank"}, "input": {"type": "checkbox"}},
    link_rel="noopener noreferrer nofollow",
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
)


# The page's title is its one h1, and a reply has an h2.
_FIRST_HEADING, _LAST_HEADING = 3, 6


def _html(text: str, outline: list[int]) -> str:
    """Return the HTML of a text; `outline` has the levels that its headings stand under so far.

    It is brought up to date. No heading is more than one level below what it stands under, however
    many marks it has: who hears the page by its outline misses nothing.
    """
    env: dict[str, Any] = {}
    tokens = _markdown.parse(text, env)
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            while outline and outline[-1] >= level:
                outline.pop()
            outline.append(level)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(_FIRST_HEADING - 1 + len(outline), _LAST_HEADING)}"
        # Alignment comes as a style, which the page's policy forbids: a class instead.
        style = token.attrs.pop("style", None) if token.attrs else None
        if isinstance(style, str) and style.removeprefix("text-align:") in {"right", "center"}:
            token.attrs["class"] = style.removeprefix("text-align:")
    return _cleaner.clean(_markdown.renderer.render(tokens, _markdown.options, env))


@lru_cache(maxsize=512)
def _remembered(text: str) -> str:
    return _html(text, [])


def render(text: str) -> SafeString:
    """Return the text's Markdown as HTML that is safe to show."""
    if not text:
        return mark_safe("")
    html = _remembered(text) if len(text) <= CACHED_CHARS else _html(text, [])
    return mark_safe(html)  # noqa: S308 - it comes out of the sanitiser


class Blocks:
    """The HTML of a text that is still growing: what is finished, and the block that is open."""

    def __init__(self) -> None:
        self.closed = ""
        self.open = ""
        self._tail = ""
        self._outline: list[int] = []  # of what is finished
        self._next = 0.0

    def feed(self, text: str, now: float) -> tuple[str, str | None]:
        """Take the next text; return what was finished by it, and the open block.

        The open block is None when it was not drawn anew: then `text` follows as it is.
        """
        self._tail += text
        if now < self._next:
            return "", None
        began = time.thread_time()
        finished = self.draw()
        took = time.thread_time() - began
        self._next = now + max(
            DRAW_SECONDS, len(self.open) / DRAW_CHARS_A_SECOND, took / DRAW_SHARE
        )
        return finished, self.open

    def draw(self) -> str:
        """Draw the open block anew; return what has been finished since the last drawing."""
        end = self._where_the_last_block_begins()
        finished = ""
        if end:
            finished = _html(self._tail[:end], self._outline)
            self.closed += finished
            self._tail = self._tail[end:]
        self.open = self.now()
        return finished

    def now(self) -> str:
        """Return the HTML of everything that is not finished, without finishing any of it."""
        return _html(self._tail, list(self._outline))

    def whole(self) -> SafeString:
        """Return the HTML of everything, as `render` would give it."""
        self.draw()
        return mark_safe(self.closed + self.open)  # noqa: S308 - it comes out of the sanitiser

    def _where_the_last_block_begins(self) -> int:
        """Return how much of the tail no further text can change.

        Only whole lines tell: an unfinished one may still turn out to be anything.
        """
        whole = self._tail.rfind("\n") + 1
        if whole < 2:
            return 0
        tokens: list[Token] = []
        _markdown.block.parse(self._tail[:whole], _markdown, {}, tokens)
        starts = [
            token.map[0]
            for token in tokens
            if token.level == 0 and token.nesting >= 0 and token.map is not None
        ]
        if len(starts) < 2:
            return 0
        place = 0
        for _ in range(starts[-1]):
            place = self._tail.index("\n", place) + 1
        return place
