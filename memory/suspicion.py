"""Text that gives orders to the assistant, or claims to be the system, waits for a person's eyes.

Everyday requests ("Write a poem") are no orders of this sort: what is looked for is text that
would change the assistant's rules, hide something from the person, or carry something away.
"""

import re

from django.utils.translation import gettext_noop

from memory.confusables import in_latin
from memory.folding import folded
from memory.prompts import visible_text

ORDER = gettext_noop("It reads like an order to the assistant.")
SYSTEM = gettext_noop("It claims to be a system message.")
CARRIES = gettext_noop("It asks to send something to an address.")
LINKS = gettext_noop("It leads to an address.")

_SYSTEM = re.compile(
    r"<\|[^|]{1,40}\|>|\[/?(?:inst|sys)\]|<<sys>>|</?(?:system|im_start|im_end|start_of_turn)\b"
    r"|(?:^|[\n.!?;/|>]\s*|[#*>_-]\s*)(?:system|developer)(?: prompt| message)?[*_`]*\s*[:\uff1a]"
    r"(?!\s*(?:debian|linux|windows|macos|ubuntu)\b)"
    r"|\b(?:new|updated|real|actual) (?:system (?:prompt|message|rules|instructions)|rules\s*\n)"
)
_ORDER = re.compile(
    r"(?<!\bi )\b(?:ignore|disregard|forget|override|bypass)\b.{0,30}\b(?:previous|prior|above"
    r"|earlier|preceding|all|any|your|the|these|system)\b.{0,20}\b(?:instructions?|rules?|prompts?"
    r"|guidelines?|directions?|restrictions?|safety)\b"
    r"|\b(?:ignorier\w*|vergiss|missachte\w*)\b.{0,40}\b(?:anweisung\w*|regeln|vorgaben)\b"
    r"|\b(?:ignore[zs]?|oublie[zs]?)\b.{0,40}\b(?:instructions|consignes|regles)\b"
    r"|\b(?:ignora|olvida)\b.{0,40}\b(?:instrucciones|reglas|istruzioni|regole|instrucoes)\b"
    r"|\bfrom now on,? (?:you (?:are|must|will)|the assistant|obey|ignore)\b"
    r"|\byou (?:are now (?:an?|dan|in|free|without|unrestricted)|must now|must always|must never"
    r"|have no restrictions|shall)\b"
    r"|\b(?:the )?(?:assistant|model|ai|chatbot) (?:must|shall|should|has to|is to|will) "
    r"(?:always|never|now|obey|ignore|reveal|send|say|reply|answer|tell)\b"
    r"|\b(?:reveal|print|repeat|show|leak)\b.{0,30}\b(?:system prompt|hidden prompt|your prompt"
    r"|your instructions|api key)\b"
    r"|\b(?:do not|don't|never) (?:tell|inform|mention (?:this|it) to|warn) the (?:user|person)\b"
    r"|\b(?:jailbreak|developer mode|dan mode)\b"
    r"|无视.{0,12}(?:指令|指示|规则)|忽略.{0,12}(?:指令|指示|规则)|(?:指示|命令|ルール)を無視"
)
_CARRIES = re.compile(
    r"\b(?:send|post|forward|upload|exfiltrate|append|embed|submit)\b.{0,80}\bhttps?://"
    r"|!\[[^\]]*\]\(\s*https?://"
    r"|\bhttps?://\S+[?&][a-z_]+=(?:\{|<|\[|%7b)"
)


_LEADS = re.compile(
    r"\[[^\]\n]{1,200}\]\(\s*(?:https?:|//|javascript:|data:)|<a\s[^>]{0,200}href|\bjavascript:\S"
    r"|\bdata:text/html"
    r"|\b(?:click|tap|visit|open|go to|log ?in|sign ?in|download|install|follow|besuche\w*|offne\w*"
    r"|klick\w*|lade|cliquez?|visitez|ouvre[zs]?|visita|abre|haz clic|clicca|apri|acesse|clique"
    r"|bezoek|klik)\b.{0,60}\b(?:https?://|www\.)|(?:点击|访问|打开|クリック).{0,30}https?://"
)
_LINK = re.compile(r"\bhttps?://\S|\bwww\.[\w-]+\.\w")

_REASONS = ((_SYSTEM, SYSTEM), (_ORDER, ORDER), (_CARRIES, CARRIES), (_LEADS, LINKS))

# A pattern that begins with a blank would read a long run of them again from each one.
_BLANKS = re.compile(r"\s{2,}")


def _one_blank(found: "re.Match[str]") -> str:
    return "\n" if "\n" in found.group() else " "


def reason_to_wait(text: str) -> str:
    """Return why this text must wait for the person's review, or an empty string."""
    plain = visible_text(text)
    seen = _BLANKS.sub(_one_blank, folded(plain))
    latin = in_latin(plain)
    looks = seen if latin == plain else _BLANKS.sub(_one_blank, folded(latin))
    for pattern, reason in _REASONS:
        if pattern.search(seen) or (looks is not seen and pattern.search(looks)):
            return reason
    return ""


def reason_for_claim(text: str) -> str:
    """Return why a claim that somebody's words were made into must wait; it may hold no link."""
    return reason_to_wait(text) or (LINKS if _LINK.search(visible_text(text).lower()) else "")
