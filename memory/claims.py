"""What two claims have to do with each other, by written rules: the same, or plainly contrary.

For when no model says so, and only where it is sure: a claim that is retired by mistake is worse
than one too many. Pure functions; in the languages that the gate knows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory.folding import folded, words

# --- Whom a claim is about. ---

_ARTICLES_LIST = """
the a an der die das den dem des ein eine einen einem einer le la les l un une du el los las una
uno il lo gli i o os as um uma het de een
"""
_ARTICLES = frozenset(_ARTICLES_LIST.split())
_OWN_WORDS = {
    *("i", "i'm", "i've", "ich", "je", "yo", "io", "eu", "ik"),
    *("user", "nutzer", "nutzerin", "benutzer", "benutzerin", "utilisateur", "utilisatrice"),
    *("usuario", "usuaria", "utente", "utilizador", "utilizadora", "gebruiker"),
    *("l'utilisateur", "l'utilisatrice", "l'utente"),
}
_MINE_LIST = """
my our mein meine meiner meinem meinen mon ma mes mi mis mio mia meu minha mijn
"""
_MINE = frozenset(_MINE_LIST.split())

_NAMES = frozenset(("name", "nom", "nombre", "nome", "naam"))


def subject_of(text: str) -> str:
    """Return whom a claim is about: "user", "user's sister", or its first word."""
    unspaced = _unspaced(text)
    if unspaced:
        thing = unspaced["thing"]
        return f"user's {thing}" if thing else "user"
    said = [word for word in words(text) if word not in _ARTICLES or word == "i"]
    first = said[0] if said else ""
    thing = said[1].removesuffix("'s") if len(said) > 1 else ""
    owner = "user" if first in _MINE else first.removesuffix("'s")
    owner = "user" if owner in _OWN_WORDS else owner
    if thing in _NAMES or not thing or (first not in _MINE and not first.endswith("'s")):
        return owner
    return f"{owner}'s {thing}"


# Chinese and Japanese write no spaces: who, whose, and what of it; a thing ends at a verb.
_UNSPACED = re.compile(
    r"^(?:用户|用戶|使用者|ユーザー)(?:(?:的|の)(?P<thing>.{1,8}?)"
    r"(?=は|が|住|在|是|叫|有|喜|爱|讨|对|不|没|工|搬|吃|想|会|很|也|都|已|去|来|最|离|现|，|$))?"
    r"(?:は|が)?(?P<rest>.*)$"
)


def _unspaced(text: str) -> "re.Match[str] | None":
    return _UNSPACED.match(folded(text).strip(" 。.!！"))


def sentence(text: str) -> str:
    """Return the text as a sentence: a capital first, and an end."""
    text = text if text[-1:] in ".!?。！？" else f"{text}."
    return text[:1].upper() + text[1:]


# --- Polarity: what is said, and whether it is denied. ---

_DENIAL = re.compile(
    r"\b(?:(?:do|does|did|is|are|am|can|could|would|will|has|have|was)(?:n't| not)|cannot|not|never"
    r"|no longer|nicht|niemals|nie|keine?[nmrs]?|ne|n'|pas|jamais|no|ya|nunca|non|mai|nao|niet"
    r"|nooit|geen)\b|不再|不|没有|没|もう|ない"
)
_ANY_MORE = re.compile(r"\b(?:any ?more|any longer|mehr|plus|piu|mais|meer)\b")
_STRONG = re.compile(r"\b(?:can't|cannot|can not|couldn't|could not) (?:stand|bear|abide)\b")
_AUXILIARIES_LIST = """
is are am be has have had do does did will that also really very still now currently ist sind
bin hat habe auch jetzt est sont suis a ai ont aussi es son soy ha he tambien ahora e sono ho
anche ora sou tem tenho agora zijn ben heeft heb ook nu called named name's name goes by heisst
name nom appelle s'appelle llama se chiama chama heet genannt known as
"""
_AUXILIARIES = frozenset(_AUXILIARIES_LIST.split())
_LIKE_LIST = """
love loves loved like likes liked enjoy enjoys adore adores fond prefers prefer favourite liebt
liebe mag gern gerne aime aimes adore gusta gustan encanta encantan ama amo adora piace
piacciono gosta gosto houdt houd
"""
_LIKE = frozenset(_LIKE_LIST.split())
_DISLIKE_LIST = """
hate hates hated dislike dislikes detest detests loathe loathes despise despises stand bear
hasst hasse verabscheut deteste detesta detesto odia odio odeia haat verafschuwt abomina
"""
_DISLIKE = frozenset(_DISLIKE_LIST.split())
_SMALL = _ARTICLES | {"of", "van", "von"}


@dataclass(frozen=True, slots=True)
class _Said:
    """A claim taken apart: about whom, which words in which order, liked or not, denied or not."""

    subject: str
    words: tuple[str, ...]
    taste: bool
    holds: bool


# What is liked, disliked, denied, or only colours what is said, in texts without spaces.
_LIKE_UNSPACED = re.compile(
    r"喜欢|喜歡|喜爱|热爱|爱(?!人|好|情)|が(?:大)?好き|を愛して(?:いる|います)?"
)
_DISLIKE_UNSPACED = re.compile(r"讨厌|討厭|厌恶|受不了|恨|が(?:大)?嫌い")
_DENIAL_UNSPACED = re.compile(
    r"不再|不是|不会|不能|不|没有|沒有|没|ではありません|ではない|じゃない|ません|(?<=[^\W\d_])ない"
)
_COLOUR_UNSPACED = re.compile(
    r"现在|目前|非常|很|也|还|都|最|了|一[只個个条輛辆匹台位]|です|である|だ|ます|今(?:は)?"
)


def _taken_apart_unspaced(text: str, rest: str) -> _Said:
    liked, disliked = _LIKE_UNSPACED.search(rest), _DISLIKE_UNSPACED.search(rest)
    denied = _DENIAL_UNSPACED.search(rest) is not None
    for pattern in (_LIKE_UNSPACED, _DISLIKE_UNSPACED, _DENIAL_UNSPACED, _COLOUR_UNSPACED):
        rest = pattern.sub("", rest)
    rest = rest.removeprefix("有")
    taste = bool(liked or disliked)
    kept = (rest,) if rest else ()
    return _Said(subject_of(text), kept, taste, holds=denied == bool(disliked))


def _taken_apart(text: str) -> _Said:
    unspaced = _unspaced(text)
    if unspaced:
        return _taken_apart_unspaced(text, unspaced["rest"])
    plain = folded(text).replace("’", "'")
    spelt = _STRONG.sub(" hate ", plain)
    denied = len(_DENIAL.findall(spelt)) > 0
    left = words(_ANY_MORE.sub(" ", _DENIAL.sub(" ", spelt)))
    subject = subject_of(text)
    own = set(subject.replace("'s", "").split()) | {"user", "user's"}
    content = [
        word.removesuffix("'s")
        for word in left
        if word not in _SMALL and word not in _AUXILIARIES and word not in _OWN_WORDS
    ]
    taste = any(word in _LIKE or word in _DISLIKE for word in content)
    averse = any(word in _DISLIKE for word in content)
    kept = tuple(
        word
        for word in content
        if word not in _LIKE and word not in _DISLIKE and word not in own and word not in _MINE
    )
    return _Said(subject, kept, taste, holds=denied == averse)


def _form(word: str, other: str) -> bool:
    """Tell whether two words are forms of one: eats and eat, allergic and allergy; rather too few.

    Numbers, dates and names must be the same.
    """
    if word == other:
        return True
    if not (word.isalpha() and other.isalpha()) or min(len(word), len(other)) < 3:
        return False
    stem = word if len(word) < len(other) else other
    longer = other if stem is word else word
    ending = longer.removeprefix(stem)
    return longer.startswith(stem) and ending in {"s", "es", "t", "n", "en", "e"}


def _same_words(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(
        _form(word, twin) for word, twin in zip(one, other, strict=True)
    )


def same_claim(one: str, other: str) -> bool:
    """Tell whether two claims say the same in nearly the same words.

    "The user's sister is called Ada" and "The user has a sister called Ada" do.
    """
    attributes = attribute_of(one), attribute_of(other)
    if attributes[0] and attributes[1]:
        alike = attributes[0][:2] == attributes[1][:2]
        if alike and _same_place(attributes[0][2], attributes[1][2]):
            return True  # "lives in Oslo" and "resides in Oslo"
    first, second = _taken_apart(one), _taken_apart(other)
    if first.holds != second.holds or first.taste != second.taste:
        return False
    about = [_about(first), _about(second)]
    return len(about[0]) > 1 and _same_words(*about)


def _about(said: _Said) -> tuple[str, ...]:
    """Return the words with the thing that is the subject's first: sister, Ada."""
    whose, _s, thing = said.subject.partition("'s ")
    if not thing:
        return (said.subject, *said.words)
    return (whose, thing, *said.words)


# --- One value at a time: where somebody lives, where they work, what they are called. ---

_WORD = r"[^\W\d_](?:[\w'’.&-]*\w)?"
_VALUE = rf"(?P<value>{_WORD}(?:,? (?:{_WORD})){{0,3}})"
_END = r"(?: (?:now|today|these days|currently|jetzt|maintenant|ahora|adesso|agora|nu))?[.!]?$"
_WHO = r"^(?P<who>(?:(?!(?:and|but|und|aber|et|y|e|en)\b)[\w'.-]+ ){1,4}?)"
_LIVES = (
    rf"{_WHO}(?:now |currently )?(?:lives?|is living|am living|resides?|wohnt|wohne|lebt|lebe"
    rf"|habite|vit|vive|vivo|mora|moro|woont|woon) (?:now |jetzt )?"
    rf"(?:in|at|a|en|te|em) {_VALUE}{_END}"
)
_MOVED = rf"{_WHO}(?:has |have )?(?:moved|relocated) (?:from .{{1,40}} )?to {_VALUE}{_END}"
_MOVED_ELSEWHERE = (
    rf"{_WHO}(?:(?:ist|bin) (?:von .{{1,40}} )?nach {_VALUE} (?:um)?gezogen[.!]?$"
    rf")"
)
_MOVED_ROMANCE = (
    rf"{_WHO}(?:(?:a|ai) demenage a|(?:se|me) (?:ha mudado|mudo|he mudado|mude) a"
    r"|(?:si|mi) (?:e|sono) trasferit[oa] a|(?:se )?mudou(?:-se)? para|is verhuisd naar)"
    rf" {_VALUE}{_END}"
)
_WORKS = (
    rf"{_WHO}(?:now |currently )?(?:works?|is working|is employed|arbeitet|arbeite|travaille"
    rf"|trabaja|trabajo|lavora|lavoro|trabalha|trabalho|werkt|werk) (?:now |jetzt )?"
    rf"(?:at|for|by|bei|fur|chez|bij|voor) {_VALUE}{_END}"
)
# Of an employer or of a place: what is meant is not sure.
_WORKS_IN = (
    rf"{_WHO}(?:(?:ahora|adesso|agora) )?(?:trabaja|trabajo|lavora|lavoro|trabalha|trabalho)"
    rf" (?:(?:ahora|adesso|agora) )?(?:en|a|na|no|em|in) {_VALUE}{_END}"
)
_NAMED = (
    rf"^(?!.*\b(?:and|und)\b)(?P<who>.{{1,40}}?)(?:'s name is| is called| is named| goes by"
    rf"| heisst| s'appelle| se llama| si chiama| se chama| chama-se| heet) {_VALUE}{_END}"
)
_ATTRIBUTES = [
    ("lives", re.compile(_LIVES)),
    ("lives", re.compile(_MOVED)),
    ("lives", re.compile(_MOVED_ELSEWHERE)),
    ("lives", re.compile(_MOVED_ROMANCE)),
    ("works", re.compile(_WORKS)),
    ("works in", re.compile(_WORKS_IN)),
    ("named", re.compile(_NAMED)),
]
_LEFT = re.compile(
    rf"{_WHO}(?:has |have |hat )?(?:just )?(?P<how>left|quit|resigned from|was fired from"
    r"|no longer works (?:at|for)|does not work (?:at|for)|stopped working (?:at|for)"
    r"|moved (?:away )?(?:from|out of)|no longer lives in|does not live in"
    r"|arbeitet nicht mehr (?:bei|fur)|wohnt nicht mehr in|ne travaille plus chez|n'habite plus a"
    r"|ya no trabaja en|ya no vive en|non lavora piu (?:a|per)|non vive piu a|werkt niet meer bij"
    rf"|woont niet meer in) {_VALUE}(?: any ?more| to .{{1,40}})?{_END}"
)
_LEFT_BEHIND = re.compile(
    rf"{_WHO}(?:hat|habe) (?:(?P<how>bei) )?{_VALUE} (?(how)gekundigt|verlassen)[.!]?$"
)
_VALUE_UNSPACED = r"(?P<value>[^，,、和与と]{1,20}?)"
_ATTRIBUTES_UNSPACED = [
    ("lives", re.compile(rf"(?:现在|目前)?(?:居?住在|搬到了?|移居到?了?){_VALUE_UNSPACED}了?$")),
    (
        "lives",
        re.compile(rf"{_VALUE_UNSPACED}(?:に住んで(?:いる|います)|に引っ越し(?:た|ました))$"),
    ),
    ("works", re.compile(rf"(?:现在|目前)?(?:就职于|任职于){_VALUE_UNSPACED}$")),
    ("works in", re.compile(rf"(?:现在|目前)?在{_VALUE_UNSPACED}(?:工作|上班)$")),
    ("works", re.compile(rf"{_VALUE_UNSPACED}に勤めて(?:いる|います)$")),
    ("works in", re.compile(rf"{_VALUE_UNSPACED}で働いて(?:いる|います)$")),
    ("named", re.compile(rf"(?:的?名字)?(?:叫做?|是){_VALUE_UNSPACED}$")),
]
_LEFT_UNSPACED = [
    ("works", re.compile(rf"(?:已经)?(?:离开了?|辞去了?|从){_VALUE_UNSPACED}(?:离职|辞职)?了?$")),
    ("works", re.compile(rf"(?:已经)?不(?:再)?在{_VALUE_UNSPACED}(?:工作|上班)了?$")),
    ("lives", re.compile(rf"(?:已经)?不(?:再)?住在{_VALUE_UNSPACED}了?$")),
]
_HOME = re.compile(r"liv|mov|wohn|habit|viv|woon")
# Values that may hold beside another: part of a year, of a day, one of two.
_BESIDE = re.compile(
    r"\b(?:also|too|both|sometimes|part[ -]time|weekends?|summers?|winters?|half|often|and|or|with"
    r"|during|while|when|until|since|auch|und|oft|aussi|et|tambien|y|anche|e|ook|en|remotely"
    r"|home|night|nights|least|once|last|first|peace|a|an)\b"
)
_CHANGE = re.compile(
    r"\b(?:moved|moving|relocated|left|leaving|quit|resigned|fired|no longer|any ?more|used to|now"
    r"|instead|new job|switched|changed|joined|started (?:at|working)|since i|not .{1,30} but"
    r"|umgezogen|gezogen|gekundigt|gewechselt|jetzt|nicht mehr|neue[rn]? (?:job|stelle)"
    r"|demenage|quitte|maintenant|ne .{1,30} plus|mudado|me mude|mude|dejado|deje|ahora|ya no"
    r"|trasferit[oa]|lasciato|adesso|ora|non .{1,30} piu|mudei|deixei|agora|verhuisd|nu"
    r"|niet meer)\b|搬到|搬家|换了|现在|不再|离开了|辞职|离职|引っ越|転職|今は"
)


def tells_change(statement: str) -> bool:
    """Tell whether somebody says that something is no longer as it was."""
    return _CHANGE.search(folded(statement).replace("’", "'")) is not None


def attribute_of(text: str) -> tuple[str, str, str] | None:
    """Return (subject, attribute, value) of a claim that says nothing else."""
    unspaced = _unspaced(text)
    if unspaced:
        return _attribute_unspaced(text, unspaced["rest"])
    plain = _plain(text)
    if _DENIAL.search(plain):
        return None
    for name, pattern in _ATTRIBUTES:
        found = pattern.match(plain)
        if found and not _BESIDE.search(found["value"]):
            return subject_of(text), name, found["value"]
    return None


def _attribute_unspaced(text: str, rest: str) -> tuple[str, str, str] | None:
    if _DENIAL_UNSPACED.search(rest):
        return None
    for name, pattern in _ATTRIBUTES_UNSPACED:
        found = pattern.match(rest)
        if found and (name != "named" or "叫" in rest or "名字" in rest):
            return subject_of(text), name, found["value"]
    return None


def _left(text: str) -> tuple[str, str] | None:
    """Return (attribute, value) of what a claim says that somebody has left."""
    unspaced = _unspaced(text)
    if unspaced:
        matches = ((name, pattern.match(unspaced["rest"])) for name, pattern in _LEFT_UNSPACED)
        return next(((name, found["value"]) for name, found in matches if found), None)
    plain = _plain(text)
    found = _LEFT.match(plain)
    if found:
        return ("lives" if _HOME.search(found["how"]) else "works"), found["value"]
    behind = _LEFT_BEHIND.match(plain)
    return ("works", behind["value"]) if behind else None


def _plain(text: str) -> str:
    return " ".join(folded(text).replace("’", "'").split())


def contradicts(new: str, old: str, *, changed: bool = False, told: str = "") -> bool:
    """Tell whether a new claim plainly makes an old one about the same subject untrue.

    The same said with a "not", or the other way round; having left what the old one names; or,
    where the person told of a change, another value for where they live, work, or their name.
    Where a language says "works in" of employers and of places, only if their words (`told`) name
    the old value too.
    """
    said, was = _taken_apart(new), _taken_apart(old)
    opposed = said.subject == was.subject and said.holds != was.holds and said.taste == was.taste
    if opposed and said.words and _same_words(said.words, was.words):
        return True
    known = attribute_of(old)
    if known is None or known[0] != said.subject:
        return False
    left = _left(new)
    if left and known[1].startswith(left[0]):
        return _same_place(left[1], known[2])
    now = attribute_of(new)
    unsure = now is not None and "works in" in {now[1], known[1]}
    return (
        changed
        and now is not None
        and now[0] == known[0]
        and now[1].split()[0] == known[1].split()[0]
        and (not unsure or folded(known[2]) in folded(told))
        and not _within(now[2], known[2])
        and not _within(known[2], now[2])
    )


def same_matter(one: str, other: str) -> bool:
    """Tell whether two claims are about the same: the person, or the same of their things."""
    subjects = subject_of(one), subject_of(other)
    if subjects[0] == subjects[1]:
        return True
    return any(
        subject == "user" and whose == "user's" and thing in words(text)
        for subject, text, (whose, _space, thing) in (
            (subjects[0], one, subjects[1].partition(" ")),
            (subjects[1], other, subjects[0].partition(" ")),
        )
    )


def resembling_words(text: str) -> list[str]:
    """Return beginnings of words of which a claim that is the same, or contrary, has at least one.

    For a first look by what is stored folded; what it finds is then compared in earnest.
    """
    kept = [word for word in _taken_apart(text).words if len(word) > 1]
    longest = max(kept, key=len, default="")
    found = [longest[: max(3, len(longest) - 2)]] if longest else []
    if attribute_of(text) or _left(text):
        found += _VERBS
    return found


_VERBS = (
    *("live", "living", "resid", "work", "employed", "named", "called", "name is", "goes by"),
    *("wohn", "lebt", "lebe", "arbeit", "heisst", "habite", "vit ", "travaill", "appelle"),
    *("vive", "vivo", "trabaj", "llama", "lavor", "chiama", "mora", "trabalh", "chama", "woon"),
    *("werk", "heet", "moved", "gezogen", "demenage", "mud", "trasferit", "verhuisd"),
    *("住", "搬到", "移居", "工作", "上班", "就职", "任职", "叫", "名字", "働", "勤め", "引っ越"),
)


def _same_place(one: str, other: str) -> bool:
    return words(one) == words(other)


def _within(inner: str, outer: str) -> bool:
    """Tell whether one value may be a part of the other: Oslo, and Oslo in Norway."""
    return set(words(inner)) <= set(words(outer))


# --- What must never be overlooked. ---

_HEALTH = re.compile(
    r"\b(?:allerg\w*|intoleran\w*|anaphyla\w*|asthma\w*|diabet\w*|epilep\w*|coeliac"
    r"|celiac|zoliakie|coeliaque|celiac[oa]|pacemaker|herzschrittmacher|blood thinners?"
    r"|blutverdunner|anticoagul\w*|insulin\w*|epipen|pregnan\w*|schwanger\w*|enceinte|embarazada|incinta|gravida"
    r"|zwanger|seizures?|haemophil\w*|hemophil\w*|immunosuppress\w*|chemotherap\w*|medication"
    r"|medikament\w*|medicament\w*|medicaci\w+|farmaci|heart (?:condition|disease)|herzkrank\w*"
    r"|wheelchair|rollstuhl\w*|fauteuil roulant|silla de ruedas|blind|deaf|taub|gehorlos"
    r"|suicid\w*|unvertraglich\w*|vertragt keine?\w*|alergi\w*|alerji\w*)\b"
    r"|过敏|過敏|アレルギー|哮喘|喘息|糖尿病|怀孕|妊娠|癫痫|аллерги|диабет|астм"
)
_NEVER = re.compile(
    r"\b(?:never|under no circumstances|must not|mustn't|may not|niemals|nie|auf keinen fall"
    r"|darf (?:nicht|keine?\w*)|jamais|en aucun cas|ne doit pas|nunca|jamas|bajo ningun concepto"
    r"|mai|per nessun motivo|nooit|in geen geval)\b"
    r"|决不|绝不|千万不要|绝对不|絶対に.{0,12}ない|никогда|нельзя"
)


def is_safety(text: str) -> bool:
    """Tell whether a claim is of health or of what must never be: it always goes before the model.

    "Never" of the past ("has never been to Rome") is none.
    """
    plain = folded(text).replace("’", "'")
    if _HEALTH.search(plain):
        return True
    found = _NEVER.search(plain)
    return found is not None and not _NEVER_YET.search(plain)


_NEVER_YET = re.compile(
    r"\b(?:has|have|had|'ve|was|were|did)\s+never\b|\bnever (?:been|had|tried|seen|met|was|did|went"
    r"|got|heard|knew|thought|read|liked|learned|learnt|visited|owned|married|finished)\b"
    r"|\bnoch nie\b|\bwar nie\b|\bhat(?:te)? nie\b|\bjamais (?:ete|eu|vu)\b|\bn'a jamais\b"
    r"|\bnunca (?:ha|he|habia|estuvo|tuvo)\b|\b(?:ha|ho) mai\b|\bmai stat[oa]\b"
)
