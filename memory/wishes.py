"""What a claim asks of the answers: short, formal, in bullet points; by written rules. Pure.

Vectors can't tell "short answers" from "detailed answers", and know "concise replies" less well
than either. In the languages that the gate knows, and Chinese and Japanese.
"""

import re
from dataclasses import dataclass

from memory.folding import folded, words
from memory.gate import BEGINS_WITH_USER, MANNER_WORDS, denies
from memory.stop_words import STOP_WORDS
from memory.terms import pairs_of

# Of these one value holds at a time; of the others several.
_SINGLE = frozenset(("length", "tone", "units", "language"))
_VALUES = {
    ("length", "short"): "short brief briefly concise concisely terse succinct compact tight kurz"
    " kurze knapp knappe bundig court courte courtes bref breve breves brevi corto corta cortas"
    " conciso concisa concisas concises sintetiche curto curta curtas kort korte beknopt",
    ("length", "long"): "long longer detailed detail details thorough depth exhaustive elaborate"
    " ausfuhrlich ausfuhrliche lang lange detaillierte detaille detaillee detaillees longues"
    " detallada detalladas largas dettagliate lunghe detalhadas longas uitgebreid uitgebreide",
    ("tone", "formal"): "formal formally sieze siezen gesiezt formell formelle vouvoie vouvoyer"
    " formelles usted formales formali formeel",
    ("tone", "informal"): "informal informally casual casually friendly duze duzen geduzt locker"
    " lockere tutoie tutoyer familier tuteo tutear amistoso amichevole informeel",
    ("units", "metric"): "metric metrisch metrische metriques metricas metriche",
    ("units", "imperial"): "imperial",
    ("layout", "list"): "bullet bullets bulleted list lists stichpunkt stichpunkte stichpunkten"
    " stichworte aufzahlung aufzahlungen puces vinetas elenco elenchi puntato puntati topicos"
    " lijst opsomming opsommingen",
    ("layout", "table"): "table tables tabular tabelle tabellen tableau tableaux tabla tablas"
    " tabella tabelle tabela tabelas tabel tabellen",
    ("layout", "steps"): "step steps stepwise schritt schritte schrittweise etape etapes paso pasos"
    " passo passi passos stap stappen",
    ("matter", "emoji"): "emoji emojis emoticons smileys",
    ("matter", "sources"): "source sources citation citations cite cited quellen quelle fuentes"
    " fonti fontes bronnen",
    (
        "matter",
        "examples",
    ): "example examples beispiel beispiele beispielen exemple exemples ejemplo"
    " ejemplos esempio esempi exemplo exemplos voorbeeld voorbeelden",
    ("language", "en"): "english englisch anglais ingles inglese engels",
    ("language", "de"): "german deutsch allemand aleman tedesco alemao duits",
    ("language", "fr"): "french franzosisch francais frances francese frans",
    ("language", "es"): "spanish spanisch espagnol espanol castellano spagnolo espanhol spaans",
    ("language", "it"): "italian italienisch italien italiano italiaans",
    ("language", "pt"): "portuguese portugiesisch portugais portugues portoghese portugees",
    ("language", "nl"): "dutch niederlandisch neerlandais neerlandes olandese holandes nederlands",
    ("language", "zh"): "chinese chinesisch chinois chino cinese chines chinees",
    ("language", "ja"): "japanese japanisch japonais japones giapponese japans",
}
_OF_WORD = {word: value for value, given in _VALUES.items() for word in given.split()}
_UNSPACED = {
    ("length", "short"): r"简短|简洁|簡短|簡潔|短い|短く|简明",
    ("length", "long"): r"详细|詳細|詳しく|详尽|長い|長く",
    ("tone", "formal"): r"正式|敬语|敬語",
    ("tone", "informal"): r"随意|口语|タメ口|くだけた",
    ("layout", "list"): r"列表|要点|箇条書き|条列",
    ("layout", "table"): r"表格|表形式",
    ("matter", "emoji"): r"表情|絵文字",
}
_ANSWERING_LIST = """
unit units einheiten unites unidades unita eenheden point points form tone explanation explanations
sentence sentences language languages message messages explained addressed address manner way ways
always please very rather kept keep
erklarungen satze satzen sprache ton immer explications phrases ton langue explicaciones frases
idioma tono lengua spiegazioni frasi lingua explicacoes uitleg zinnen taal toon
"""
_ANSWERING = frozenset(_ANSWERING_LIST.split()) | MANNER_WORDS
# "The user likes Italian" may be of food: a language is one of answers only beside these.
_ANSWERS_LIST = """
answer answers answered reply replies response responses language written addressed antwort
antworten sprache reponse reponses langue respuesta respuestas idioma risposta risposte lingua
resposta respostas antwoord antwoorden taal
"""
_ANSWERS = frozenset(_ANSWERS_LIST.split())
_MANNER_UNSPACED = re.compile(r"回答|回复|答え|返事|説明|回應|语气|口調")
_SAME_PAIRS = 0.6


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of the answers: (axis, value) each, wanted or not."""

    values: frozenset[tuple[str, str]]
    wanted: bool

    def against(self, other: "Wish") -> bool:
        """Tell whether the two can't both be followed."""
        if self.values == other.values:
            return self.wanted != other.wanted
        if not (self.wanted and other.wanted):
            return False
        mine, theirs = dict(self.values), dict(other.values)
        return any(mine[axis] != theirs[axis] for axis in _SINGLE & mine.keys() & theirs.keys())


def wish_of(text: str) -> Wish | None:
    """Return what a claim asks of the answers; None where it says anything else besides."""
    said = _own(text)
    values = {_OF_WORD[word] for word in said if word in _OF_WORD}
    if pairs_of(text):
        values |= {value for value, seen in _UNSPACED.items() if re.search(seen, folded(text))}
        return Wish(frozenset(values), not denies(text)) if values and _manner(text) else None
    around = {word for word in said if word not in _OF_WORD}
    if not values or not around or not around <= _ANSWERING:
        return None
    if any(axis == "language" for axis, _value in values) and not around & _ANSWERS:
        return None
    return Wish(frozenset(values), not denies(text))


def _manner(text: str) -> bool:
    return _MANNER_UNSPACED.search(folded(text)) is not None


def matter_of(text: str) -> str:
    """Return the words of a claim that say what it is about, without "The user prefers"."""
    kept = [word for word in _own(text) if word not in MANNER_WORDS]
    return " ".join(kept) or text


def _own(text: str) -> list[str]:
    plain = BEGINS_WITH_USER.sub("", folded(text).replace("’", "'"))
    return [word for word in words(plain) if word not in STOP_WORDS and word not in _DENYING]


_DENYING_LIST = """
dislike dislikes hate hates avoid avoids never without no not none stop mag hasst meidet ohne keine
deteste evite sans odia evita sin senza sem zonder
"""
_DENYING = frozenset(_DENYING_LIST.split())


def told_apart(one: str, other: str) -> bool:
    """Tell whether two texts without spaces share too little to be the same, whatever vectors say.

    The default embedder knows few of their characters: what differs in those it takes for equal.
    """
    pairs = set(pairs_of(matter_of(one))), set(pairs_of(matter_of(other)))
    if not (pairs[0] or pairs[1]):
        return False
    return len(pairs[0] & pairs[1]) < _SAME_PAIRS * len(pairs[0] | pairs[1])
