"""What an extractor claims is believed only if the person's own words bear it out. Pure functions.

Each rule gives the code of the reason for which a claim is refused. The rules are strict: a fact
that is refused is still found in its exchange, while a wrong one misleads.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.claims import attribute_of, same_claim, subject_of
from memory.dates import other_days
from memory.folding import folded, words
from memory.stop_words import STOP_WORDS
from memory.terms import pairs_of

FACT_CHARS = 300
_FEWEST_CHARS = 3
_SHARED_PART = 0.5

_THOUGHTS = re.compile(r"</?think|</?reasoning|</?analysis|<\||\bas an ai\b|chain of thought", re.I)
_WRAPPING = re.compile(r"```|^\s*[{\[]|[{}]|\"\s*:\s*\"|https?://\S{80,}")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*|\n")
_ASKING = re.compile(r"[?？؟]\s*[\"'”’)]*\s*$")
_ASKS_WITHOUT_MARK = re.compile(
    r"^(?:(?:what|who|whom|whose|where|when|why|which|how)(?:'s| (?:is|are|was|were|do|does|did|can"
    r"|could|will|would|should|has|have|much|many|long|far))\b"
    r"|(?:is|are|am|was|were|do|does|did|can|could|will|would|should|have|has) "
    r"(?:i|you|we|they|he|she|it|there|the|my|your)\b"
    r"|(?:wer|was|wo|wann|warum|wie|welche[rsmn]?) (?:ist|sind|war|kann|soll|hat|haben|viele?)\b"
    r"|(?:soll|sollte|kann|konnte|darf|muss|bin|habe|hatte|werde|wurde|ist|sind|war)"
    r" (?:ich|du|er|es|wir|man)\b|est-ce que?\b|(?:dois|puis|ai|suis)-je\b)"
)
_QUOTATION = re.compile(
    r'"[^"\n]{2,400}"|“[^”\n]{2,400}”|„[^“”\n]{2,400}[“”]|«[^»\n]{2,400}»|「[^」\n]{1,400}」'
    r"|(?<!\w)'[^'\n]{2,400}'(?!\w)|‘[^’\n]{2,400}’(?!\w)"
)
# What somebody else said, behind a colon instead of in quotation marks.
_REPORTED = re.compile(
    r"\b(?!(?:i|we|ich|wir|je|nous|yo)\b)[^\W\d_]+ (?:said|says|wrote|writes|asked|answered|replied"
    r"|told (?:me|us|him|her|them)|sagte?|schrieb|meinte?|a dit|dit|dijo|dice|ha detto|disse|zei)"
    r"\s*:[^.!?\n]*",
    re.I,
)
_CLAUSES = re.compile(
    r"[,;:.!?()–—\n。、，！？]|\b(?:but|however|although|aber|sondern|mais|pero|mas|ma|maar)\b"
)
_SUPPOSING = re.compile(
    r"^\s*(?:if|imagine|suppose|supposing|what if|let's say|wenn|falls|angenommen|si|se|als)\b"
)

_USER = (
    r"(?:(?:the|der|die|le|la|el|il|lo|o|a|de|l') ?)?(?:user|nutzer|nutzerin|benutzer|benutzerin"
    r"|utilisateur|utilisatrice|usuario|usuaria|utente|utilizador|utilizadora|gebruiker|person)"
)
_ABOUT_USER = re.compile(rf"^{_USER}\b(?!'s|’s)|^ユーザー(?!の)|^(?:用户|使用者)(?!的)")
BEGINS_WITH_USER = re.compile(rf"^{_USER}(?:'s|’s)?\s|^(?:ユーザー|用户|使用者)[はのが的]?")
_NO_LONGER = re.compile(
    r"\b(?:no longer|not any ?more|any ?more|any longer|used to|formerly|nicht mehr|fruher"
    r"|ne \w+ plus|ya no|non piu|nao mais|niet meer)\b|不再|もう"
)
_NOT = re.compile(
    r"\b(?:not|never|no|none|cannot|can't|nor|without|nicht|nie|niemals|kein|keine|keinen|keiner|ohne"
    r"|pas|jamais|sans|nunca|jamas|sin|non|mai|senza|nao|sem|niet|nooit|geen|zonder)\b|n't\b|不|没|ない"
)
_AVERSE = re.compile(
    r"\b(?:dislik\w*|hat(?:es?|ed|ing)|avoid\w*|stop(?:s|ped)?|quit\w*|refus\w*|unable|allerg\w*"
    r"|intoleran\w*|left|former\w*|lacks?|abstain\w*|detest\w*|loath\w*|despis\w*|free|gave up"
    r"|hasst?|meidet?|mag kein\w*|deteste\w*|evite\w*|odia\w*|evita\w*)\b"
)
_KIN_UNSPACED = (
    r"(?:朋友|同事|老板|妈|爸|母亲|父亲|姐|妹|哥|弟|妻子|老婆|丈夫|老公|儿子|女儿|孩子|爷爷|奶奶"
    r"|叔叔|阿姨|表|堂|家|们)"
)
_I = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|im|ive|me|myself|we|we're|we've|us|ich|mir|mich|wir|uns|je|j'\w+|moi"
    r"|nous|yo|nosotros|io|noi|eu|nos|ik|wij|we)\b"
    rf"|我(?!的|{_KIN_UNSPACED})|(?:私|僕|俺)(?!の)"
)
_YOU = re.compile(
    r"\b(?:you|you're|your|yours|du|dich|dir|dein\w*|tu|toi|ton|ta|vous|votre|vos|tuyo|usted|ustedes"
    r"|voi|tuo|tua|voce|jij|jouw|jullie)\b|你|您|あなた"
)
# "Show me ..." says nothing of oneself.
_FOR_ME = re.compile(
    r"\b(?:show|tell|give|send|get|find|write|make|explain|help|let|remind|list|fetch|bring|buy"
    r"|teach|zeige?|sage?|gib|schicke?|finde?|schreibe?|erklare?|hilf|nenne?|montre|dis|donne"
    r"|envoie|muestra|dime|dame|mostra|dimmi|dammi)"
    r"(?:-moi| (?:to )?(?:me|us|mir|uns|moi|nous))\b"
)
_MY = re.compile(
    r"\b(?:my|our|mein|meine|meiner|meinem|meinen|unser|unsere|mon|ma|mes|notre|nos|mi|mis|nuestro"
    r"|nuestra|mio|mia|nostro|nostra|meu|minha|meus|minhas|mijn|onze)\s+(?:\w+(?:est|er)?\s+)??(\w+)"
)
_MY_UNSPACED = re.compile(rf"(?:我的|(?:私|僕|俺)の)(\w{{1,2}})|我({_KIN_UNSPACED})")
_TIME_UNSPACED = re.compile(
    r"(?:今日|昨日|明日|今朝|今晩|今年|去年|来年|先週|来週|最近|毎日|毎朝|今天|昨天|明天|今早|今晚"
    r"|明年|上周|下周|每天|每周)(?:は|に|、|，)?"
)
_NOW = re.compile(
    r"\b(?:now|ahora|adesso|agora|ya|tambien|siempre|sempre|hoy|oggi|hoje|desde|normalmente|ademas"
    r"|inoltre|anche|actualmente|attualmente|atualmente)\b"
)
_THEY = re.compile(
    r"\b(?:he|he's|she|she's|they|they're|er|sie|il|elle|ils|elles|el|ella|ellos|lui|lei|loro|ele"
    r"|ela|eles|hij|zij)\b|他|她|彼"
)
_NAMING = re.compile(
    r"\b(?:my name(?: is|'s)|name's|call me|(?:i am|i'm) called|i go by|known as|ich hei(?:ss|ß)e"
    r"|mein name|nenn(?:t|en sie)? mich|je m'appelle|mon nom|me llamo|mi nombre|mi chiamo"
    r"|il mio nome|me chamo|chamo-me|meu nome|ik heet|mijn naam)\b|我叫|名前は"
)
_NAMED = re.compile(
    rf"(?:{_USER}(?:'s|’s) (?:first |full |last )?name is|{_USER} (?:is called|is named|goes by"
    rf"|heisst|s'appelle|se llama|si chiama|se chama|chama-se|heet))"
    r" (?P<name>[^.,;]+)|^(?:用户|使用者)(?:的?名字)?(?:叫|是名叫)"
)
_IS_NAME = re.compile(
    r"^(?:the user|l'utilisat(?:eur|rice)|el usuario|la usuaria|l'utente|o utilizador"
    r"|de gebruiker) (?:is|est|es|e|é|è) (?P<name>[^\W\d_a-z]\w+)[.]?$",
    re.I,
)
# German has a capital for "teacher" and "tired one" too: there a name is given by its verb alone.
_I_AM_NAME = re.compile(
    r"\b(?:i'm|i am|im|this is|je suis|soy|sono|sou|ik ben)\s+(?P<name>\w+(?: \w+)?)"
)
# What follows "I am" with a capital now and then, and names nobody.
_NO_NAME = re.compile(
    r"^(?:not|going|so|very|just|also|now|still|here|back|in|at|on|from|afraid|allergic|asking|busy"
    r"|bored|diabetic|done|female|fine|gay|glad|good|happy|hungry|ill|late|looking|lost|male"
    r"|married|new|old|pregnant|ready|sad|sick|single|sorry|sure|thirsty|tired|trying|vegan"
    r"|vegetarian|working|french|greek|dutch|czech|swiss|thai|iraqi|german|norwegian|roman"
    r"|catholic|muslim|jewish|hindu|\w+(?:ish|ese|ian|ean|can|ist|ing|ais|aise|ois|oise|ien|ienne"
    r"|ano|ana|ol|ola))$"
)
_AND = re.compile(r"\b(?:and|und|et|y|e|en)\b")
_DATES = re.compile(
    r"\d{4}-\d{2}(?:-\d{2})?|\b(?:19|20)\d{2}\b"
    r"|\b\d{1,2}(?:st|nd|rd|th|\.)? (?:of )?[^\W\d_]{3,9} (?=\d{4})"
)


_ABOUT_ASSISTANT = re.compile(
    r"^(?:(?:the|der|die|le|la|l'|el|il|o|a|de) ?)?(?:assistant|ai|a\.i\.|chatbot|bot"
    r"|(?:language )?model|recollect|assistent(?:in)?|asistente|assistente)\b"
    r"|^(?:助手|アシスタント)"
)
_OF_USER = re.compile(
    r"\b(?:of the user|des nutzers|der nutzerin|de l'utilisat\w+|del usuario|de la usuaria"
    r"|dell'utente|do utilizador|van de gebruiker)\b"
)
# What somebody else says or thinks of the person; but a doctor's word is taken.
_SOMEBODY_SAYS = re.compile(
    r"\b(?!(?:i|we|ich|wir|je|nous|yo|doctor|doctors|dr|physician|gp|dentist|nurse|allergist"
    r"|therapist|test|tests|results|arzt|arztin|hausarzt|medecin|docteur|medico|medica|arts)\b)"
    r"[^\W\d_]+ (?:said|says?|thinks?|thought|believes?|believed|claims?|claimed|assumes?|insists?"
    r"|reckons?|told (?:me|us|him|her|them|everyone)|sagt|sagte|meint|meinte|glaubt|denkt|findet"
    r"|behauptet|dit|pense|croit|dice|dijo|cree|piensa|pensa|crede|disse|diz|zegt|zei|vindt)\b"
    r"(?![^,]*\bi (?:said|think|believe)\b)|(?:他|她|彼|们|人)(?:说|说过|觉得|认为)"
)
_UNSURE = re.compile(
    r"\b(?:wonder\w*|know|sure|certain|ask|asking|check|see|idea|curious|figure out|find out"
    r"|tell me)\b[^.;]{0,25}\b(?:if|whether)\b"
    r"|\b(?:wissen|weiss|frage|sicher|ahnung)\b[^.;]{0,25}\bob\b"
    r"|\b(?:sais|savoir|demande|se|saber|pregunto)\b[^.;]{0,15}\bsi\b"
    r"|\b(?:so|sapere|chiedo|sei|saber|pergunto)\b[^.;]{0,15}\bse\b"
    r"|\b(?:weet|weten|vraag)\b[^.;]{0,15}\bof\b|是否|会不会|不知道"
)
_WISHING = re.compile(
    r"\b(?:wish|wished|if only|dreamt|dreamed|dream (?:that|of)|pretend\w*|imagine|suppose"
    r"|imagining|supposing|assume|assuming|let's say|angenommen|stell(?:en sie)? dir vor"
    r"|wunschte|traumte"
    r"|imaginons|supposons|imagine que|ojala|supongamos|imagina|supponiamo|magari|oxala|stel dat"
    r"|stel je voor)\b|假如|如果|假设|要是|もし"
)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A fact as an extractor gives it: in both persons, with the words that it rests on.

    The first and the last day on which it holds are ISO dates, or empty.
    """

    text: str
    first_person: str
    quote: str
    supersedes: str = ""
    valid_from: str = ""
    valid_until: str = ""
    safety: bool = False


def refusal(
    claim: Claimed,
    statement: str,
    *,
    templates: Iterable[str] = (),
    said_at: datetime | None = None,
) -> str:
    """Return the code of the reason why this claim is refused; empty when the words bear it out.

    `statement` is everything the person said in the message; `templates` are the prompt's own
    examples, which a weak model repeats as facts. `said_at` is in the person's zone: a claim may
    hold no day but those that the statement names, where these are certain.
    """
    code = shape_refusal(claim, templates) or _ground(claim, statement)
    if not code and said_at is not None and other_days(claim.text, statement, said_at):
        return "other_day"
    return code


def bears_a_claim(statement: str) -> bool:
    """Tell whether any claim could pass `refusal`: not if there is no word, or all of it asks."""
    own = folded(own_words(statement)).replace("’", "'")
    sentences = [part.strip() for part in _SENTENCE.findall(own) if words(part)]
    # However many of them a quote spans, what ends with a mark still does; and so with a beginning.
    marked = all(_ASKING.search(sentence) for sentence in sentences)
    begun = all(_ASKS_WITHOUT_MARK.match(sentence) for sentence in sentences)
    return bool(sentences) and not marked and not begun


def shape_refusal(claim: Claimed, templates: Iterable[str]) -> str:
    text = claim.text
    if len(text) < _FEWEST_CHARS or not any(character.isalpha() for character in text):
        return "empty"
    if len(text) > FACT_CHARS or len(claim.first_person) > FACT_CHARS:
        return "too_long"
    if "\n" in text.strip() or len(re.findall(r"[.!?。]\s+\S", text)) > 1:
        return "not_one_sentence"
    if _THOUGHTS.search(text) or _THOUGHTS.search(claim.quote):
        return "reasoning"
    if _WRAPPING.search(text):
        return "not_plain_text"
    if words(text) in [words(template) for template in templates]:
        return "template"
    if _ASKING.search(text):
        return "question"
    return ""


def _ground(claim: Claimed, statement: str) -> str:
    own = own_words(statement)
    quote = " ".join(words(claim.quote))
    if not quote or quote not in " ".join(words(own)):
        elsewhere = quote and quote in " ".join(words(statement))
        return "quoted_speech" if elsewhere else "quote_not_said"
    sentence = _sentence_of(quote, own)
    if _asks(sentence):
        return "question"
    content = _content(claim.text)
    if not content:
        return "says_nothing"
    # Each word once: a pasted document has thousands of them.
    said = dict.fromkeys(words(own))
    stands = {word: _alike_any(word, said) for word in dict.fromkeys(content)}
    borne = [word for word in content if stands[word]]
    if len(borne) < len(content) * _SHARED_PART:
        return "not_supported"
    if _other_numbers(claim.text, own):
        return "other_number"
    return (
        _subject(claim, sentence)
        or _name(claim, sentence)
        or _polarity(claim, sentence, borne)
        or _over(claim, sentence)
    )


def _other_numbers(text: str, own: str) -> bool:
    """Tell whether the fact has a number that the person did not say, while they said others."""
    said = set(re.findall(r"\d+", own))
    given = set(re.findall(r"\d+", _DATES.sub(" ", text)))
    return bool(said) and not given <= said


def own_words(statement: str) -> str:
    """Return the statement without quoted lines, code, and speech in quotation marks."""
    text = re.sub(r"```.*?(?:```|\Z)", "\n", statement, flags=re.S)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(">")]
    return _REPORTED.sub(" … ", _QUOTATION.sub(_unless_a_word, "\n".join(lines)))


def _unless_a_word(found: "re.Match[str]") -> str:
    """Keep a name or a title in quotation marks; leave out what somebody said."""
    inner = found.group()[1:-1]
    return inner if len(inner.split()) < 3 and inner.isascii() else " … "


def _sentence_of(quote: str, own: str) -> str:
    """Return the folded sentences in which the quote stands."""
    sentences = [part for part in _SENTENCE.findall(own) if part.strip()]
    for many in range(1, 5):
        for first in range(len(sentences) - many + 1):
            joined = " ".join(part.strip() for part in sentences[first : first + many])
            if quote in " ".join(words(joined)):
                return folded(joined).replace("’", "'")
    return folded(own).replace("’", "'")


def _asks(sentence: str) -> bool:
    return bool(_ASKING.search(sentence) or _ASKS_WITHOUT_MARK.match(sentence.strip()))


def _content(text: str) -> list[str]:
    without = _NO_LONGER.sub(" ", BEGINS_WITH_USER.sub("", folded(text)))
    return [word for word in words(without) if word not in STOP_WORDS and not word.isdecimal()] or [
        word for word in words(without) if word not in STOP_WORDS
    ]


def _alike(one: str, other: str) -> bool:
    """Tell whether two words are forms of one: allergic and allergy, love and loves."""
    if one == other:
        return True
    if not one.isascii() and len(one) > 1 and (one in other or other in one):
        return True  # scripts that write no spaces
    pairs = pairs_of(one)
    if pairs and pairs_of(other):
        return 2 * sum(pair in other for pair in pairs) >= len(pairs)
    shortest = min(len(one), len(other))
    if shortest < 3:
        return False
    needed = max(3, round(0.6 * max(len(one), len(other))))
    return one[:needed] == other[:needed] or (shortest == 3 and one[:3] == other[:3])


def _subject(claim: Claimed, sentence: str) -> str:
    """A fact about the person rests on what they say about themselves, not about a friend."""
    fact = folded(claim.text)
    if _ABOUT_ASSISTANT.match(fact) and not _OF_USER.search(fact):
        return "other_subject"
    if not _ABOUT_USER.match(fact):
        return ""
    sentence = _FOR_ME.sub(lambda found: " " * len(found.group()), sentence)
    content = _content(claim.text)
    places = _places(sentence, content)
    place = min(places, default=len(sentence))
    before = sentence[:place]
    code = _not_told(sentence, content)
    if code:
        return code
    markers = [(found.start(), "i", "") for found in _I.finditer(before)]
    markers += [(found.start(), "my", found[1]) for found in _MY.finditer(sentence[: place + 40])]
    markers += [
        (found.start(), "my", found[1] or found[2]) for found in _MY_UNSPACED.finditer(before)
    ]
    markers += [(found.start(), "they", "") for found in _THEY.finditer(before)]
    clauses = _telling([clause for clause in _CLAUSES.split(sentence) if clause], content)
    if not any(_I.search(clause) for clause in clauses):  # but "You can call me Mo"
        markers += [(found.start(), "they", "") for found in _YOU.finditer(before)]
    markers = [marker for marker in markers if marker[0] <= place]
    if markers:
        _at, sort, thing = max(markers)
        if sort == "i":
            return ""
        if sort == "my" and (
            _alike_any(thing, words(fact)) or thing in {"name", "nom", "nombre", "nome", "naam"}
        ):
            return ""
        return "other_subject"
    # No subject at all: "Vegetarian, by the way", or a language that leaves "I" out.
    before = _NOW.sub(" ", _TIME_UNSPACED.sub(" ", before))
    skipped = [word for word in words(before) if word not in STOP_WORDS]
    return "other_subject" if skipped and not _I.search(sentence) else ""


_TURNS = re.compile(
    r";|\b(?:but|however|although|aber|doch|sondern|mais|pero|mas|ma|maar)\b|但是?|可是|でも"
)


def _not_told(sentence: str, content: Sequence[str]) -> str:
    """Return why it is not told as so: somebody else says it, or nobody does for sure."""
    parts = [part for part in _TURNS.split(sentence) if part.strip()]
    codes = []
    for part in _telling(parts, content):
        before = part[: min(_places(part, content), default=len(part))]
        if _SOMEBODY_SAYS.search(before):
            codes.append("quoted_speech")
        elif _UNSURE.search(before) or _WISHING.search(before):
            codes.append("only_supposed")
        else:
            return ""
    return codes[0] if codes else ""


def _places(sentence: str, content: Sequence[str]) -> list[int]:
    """Return where words of a fact stand in a sentence."""
    wanted = dict.fromkeys(content)
    found = [(one.group(), one.start()) for one in re.finditer(r"[^\W_]+", sentence)]
    is_one = {
        spelt: any(_alike(word, spelt) for word in wanted) and not pairs_of(spelt)
        for spelt in dict.fromkeys(spelt for spelt, _at in found)
    }
    places = [at for spelt, at in found if is_one[spelt]]
    return places + [at for word in wanted for at in _places_unspaced(word, sentence)]


def _places_unspaced(word: str, sentence: str) -> list[int]:
    """Return where a word of a text without spaces stands, or else the first part of it."""
    at = sentence.find(word)
    if at >= 0 or not pairs_of(word):
        return [at] if at >= 0 and pairs_of(word) else []
    return [sentence.find(pair) for pair in pairs_of(word) if pair in sentence][:1]


def _alike_any(word: str, others: Iterable[str]) -> bool:
    return any(_alike(word, other) for other in others)


def _name(claim: Claimed, sentence: str) -> str:
    """A name is given in so many words: "I'm going to Lisbon" names nobody."""
    named = _NAMED.search(folded(claim.text))
    bare = _IS_NAME.search(claim.text) if named is None else None
    if bare is not None and bare["name"][:1].isupper():
        # "The user is Christophe": as they said it of themselves, or not at all.
        said = [words(found["name"])[:1] for found in _I_AM_NAME.finditer(sentence)]
        given = words(bare["name"])[:1]
        return "" if given in said or _NAMING.search(sentence) else "no_name_given"
    if named is None or _NAMING.search(sentence):
        return ""
    first = words(named["name"] or "")[:1]
    for found in _I_AM_NAME.finditer(sentence):
        given = words(found["name"])
        capital = first and first[0].title() in claim.quote
        if given[:1] == first and capital and not _NO_NAME.match(first[0]):
            return ""
    return "no_name_given"


def _polarity(claim: Claimed, sentence: str, borne: list[str]) -> str:
    """A "not" in what was said is a "not" in the fact, and the other way round."""
    clauses = [clause for clause in _CLAUSES.split(sentence) if clause]
    telling = _telling(clauses, borne)
    if all(_SUPPOSING.match(clause) for clause in telling):
        return "only_supposed"
    denied = [_denies(clause, borne) for clause in telling]
    fact = _NO_LONGER.sub(" ", folded(claim.text).replace("’", "'"))
    said = " ; ".join(telling)
    fact_denies = bool(_NOT.search(fact))
    fact_averse = (
        fact_denies or bool(_AVERSE.search(fact)) or bool(_NO_LONGER.search(folded(claim.text)))
    )
    if all(denied) and not fact_averse:
        return "denied"
    if all(_OVER.search(clause) for clause in telling) and not (fact_averse or _PAST.search(fact)):
        return "no_longer_so"
    if fact_denies and not (_NOT.search(said) or _AVERSE.search(said) or _NO_LONGER.search(said)):
        return "not_denied"
    return ""


_OVER = re.compile(
    r"\b(?:used to|formerly|no longer|fruher|damals|avant,? j|autrefois|antes|una volta|prima"
    r"|antigamente|vroeger)\b|不再|以前|曾经|昔は"
)
_PAST = re.compile(
    r"\b(?:used to|was|were|had|did|formerly|once|past|lived|worked|loved|liked|previously|fruher"
    r"|war|hatte|wohnte|lebte|arbeitete|ehemal\w*|etait|avait|ancien\w*|habitait|travaillait|era"
    r"|vivia|trabajaba|antes|viveva|lavorava|morava|trabalhava|was|woonde|werkte|vroeger)\b"
    r"|以前|曾经|昔|た。?$"
)


def _telling(clauses: Sequence[str], borne: Sequence[str]) -> Sequence[str]:
    """Return the clauses that bear most of a fact: "live" alone is in two, "Rome" in one."""
    said = [words(clause) for clause in clauses]
    hits = [sum(any(_alike(word, one) for one in own) for word in borne) for own in said]
    most = max(hits, default=0)
    return [clause for clause, hit in zip(clauses, hits, strict=True) if hit == most]


# What comes before the name of a place or an employer that is no longer one.
_GONE = (
    r"\b(?:left|leaving|quit|quitting|resigned from|fired from|from|out of"
    r"|used to (?:work|live) \w+|no longer \w+ \w+|verlassen|gekundigt bei|aus|von|quitte|de"
    r"|dejado|deje|desde|lasciato|da|deixei|verlaten|weg bij|uit|van) "
    r"(?:the |my |meine? |mon |mi )?"
)


# Words of a claim about how somebody likes their answers that nobody says of themselves.
_MANNER = """
prefer prefers preferred want wants wish wishes like likes expect expects need needs request
requests ask asks asked answer answers reply replies response responses assistant format style
formatted written given use uses using information text nutzer bevorzugt mochte wunscht
antworten antwort prefere souhaite veut reponses reponse prefiere quiere desea respuestas
respuesta preferisce vuole risposte risposta quer respostas resposta wil antwoorden wants
"""
MANNER_WORDS = frozenset(_MANNER.split())
_ABOUT_ANSWERS = re.compile(
    r"\b(?:bullet ?points?|bullets|bulleted|emojis?|jargon|small talk|metric|imperial|markdown"
    r"|tl;?dr)\b"
    r"|\b(?:answer|reply|respond|explain|write|speak|talk|summari[sz]e|format|address|give|call|tell"
    r"|show|keep|be|use|skip|avoid|stop|start|end|cite|stick)\b[^.!?]{0,60}\b(?:answers?|replies|reply"
    r"|responses?|me|short|brief|briefly|concise|concisely|longer|detailed|detail|formal|informal"
    r"|simple|simply|plain|step by step|examples?|sources?|lists?|tables?|english|german|french"
    r"|spanish|italian|portuguese|dutch|chinese|japanese|units|sentences?|words?|tone|apologi\w+"
    r"|disclaimers?)\b"
    r"|\b(?:your|the) (?:answers?|replies|responses?|explanations?)\b|\bfrom now on\b"
    r"|\bi (?:prefer|like|want|hate|dislike)\b[^.!?]{0,60}\b(?:answers?|replies|responses?"
    r"|explanations?|bullets?|lists?|examples?)\b"
    r"|\b(?:antworte|antworten|erklare?|schreib|schreibe|fass|nenn|nenne|duze|sieze|benutze|verwende"
    r"|halte dich)\b|\bstichpunkt\w*|\bstichwort\w*|\baufzahlung\w*|\bab jetzt\b"
    r"|\b(?:reponds|repondez|explique|expliquez|ecris|ecrivez|tutoie|vouvoie)\b|\bliste a puces\b"
    r"|\bdesormais\b|\b(?:responde|respondeme|explica|explicame|escribe|tuteame)\b|\bvinetas\b"
    r"|\ba partir de ahora\b|\b(?:rispondi|rispondimi|spiega|scrivi)\b|\belenchi? puntat\w\b"
    r"|\bd'ora in poi\b|\b(?:responda|explique|escreva)\b|\ba partir de agora\b|\btopicos\b"
    r"|\b(?:antwoord|schrijf|leg uit)\b|\bopsomming\w*|\bvoortaan\b"
    r"|(?:请|請)?(?:用|以).{0,12}(?:回答|回复|回覆)|简短|簡潔|箇条書き|(?:答え|返事|説明)(?:て|は)"
)


def denies(text: str) -> bool:
    """Tell whether a claim says what somebody does not want, or does no longer."""
    plain = folded(text).replace("’", "'")
    return any(one.search(plain) is not None for one in (_NOT, _AVERSE, _NO_LONGER))


def about_answering(text: str) -> bool:
    """Tell whether somebody says how they like to be answered."""
    return _ABOUT_ANSWERS.search(folded(own_words(text)).replace("’", "'")) is not None


def persona_refusal(claim: Claimed, statement: str, *, templates: Iterable[str] = ()) -> str:
    """Return why a claim of who somebody is, or how they like answers, is refused; or nothing.

    As `refusal`; but a wish about the answers may be put as an order or a question ("Can you use
    bullet points?"), without a word about themselves.
    """
    code = shape_refusal(claim, templates)
    if code:
        return code
    own = own_words(statement)
    quote = " ".join(words(claim.quote))
    if not quote or quote not in " ".join(words(own)):
        return "quote_not_said"
    sentence = _sentence_of(quote, own)
    wish = about_answering(sentence)
    if _asks(sentence) and not wish:
        return "question"
    content = [word for word in _content(claim.text) if word not in MANNER_WORDS]
    # Each word once: a pasted document has thousands of them.
    said = dict.fromkeys(words(own))
    stands = {word: _alike_any(word, said) for word in dict.fromkeys(content)}
    borne = [word for word in content if stands[word]]
    if not content or len(borne) < len(content) * _SHARED_PART:
        return "not_supported"
    if _other_numbers(claim.text, own):
        return "other_number"
    if not _ABOUT_USER.match(folded(claim.text)) and not _I.match(folded(claim.text)):
        return "other_subject"
    other = "" if wish else _subject(claim, sentence) or _name(claim, sentence)
    return other or _polarity(claim, sentence, borne)


def pattern_refusal(text: str, facts: Iterable[str], *, templates: Iterable[str] = ()) -> str:
    """Return why a pattern that these facts are said to show is refused; or nothing.

    It is about the person, names nobody and no number that they do not, and is none of them.
    """
    facts = list(facts)
    code = shape_refusal(Claimed(text, "", ""), templates)
    if code:
        return code
    if not subject_of(text).startswith("user") and not text.startswith(("用户", "ユーザー")):
        return "other_subject"
    told = [word for fact in facts for word in words(fact)]
    if any(same_claim(text, fact) for fact in facts):
        return "no_pattern"
    if not set(re.findall(r"\d+", text)) <= set(re.findall(r"\d+", " ".join(facts))):
        return "other_number"
    return "other_name" if other_names(text, told) else ""


def other_names(text: str, told: Iterable[str]) -> bool:
    """Tell whether a sentence names somebody or something that is not among the words told."""
    known = list(told)
    names = re.findall(r"(?<![.!?] )(?<!^)\b[A-Z][^\W\d_]+", text)
    return any(
        not any(_alike(word, other) for other in known)
        for name in names
        for word in words(name)
        if word not in STOP_WORDS
    )


def borne_part(text: str, told: Iterable[str]) -> float:
    """Return which part of a sentence's words is among the words told, from 0 to 1."""
    known = list(told)
    content = _content(text)
    borne = [word for word in content if any(_alike(word, other) for other in known)]
    return len(borne) / len(content) if content else 0.0


def _over(claim: Claimed, sentence: str) -> str:
    """ "I left Acme" and "I moved from Rome" say where somebody is no longer."""
    known = attribute_of(claim.text)
    if known is None or known[1] == "named":
        return ""
    said = " ".join(words(sentence))
    value = re.escape(" ".join(words(known[2])))
    gone = re.search(rf"{_GONE}{value}\b", said)
    behind = re.search(rf"\b{value} (?:gekundigt|kundige|verlassen|aufgehort)\b", said)
    unspaced = re.search(rf"(?:从|離|离开了?|辞去了?){re.escape(known[2])}", sentence)
    if behind or unspaced:
        return "no_longer_so"
    back = re.search(rf"\b(?:in|at|to|for|bei|nach|a|en|chez|bij|naar) {value}\b", said)
    return "no_longer_so" if gone and not back else ""


def _denies(clause: str, borne: list[str]) -> bool:
    """Tell whether a clause denies what bears a fact: a "not" reaches over "and" only forwards."""
    denied = False
    for part in _AND.split(clause):
        denied = denied or bool(_NOT.search(part))
        if not denied and any(_alike(word, other) for word in borne for other in words(part)):
            return False
    return denied
