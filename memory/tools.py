"""What the model may do by itself with what is remembered of the person it talks with.

    save_memory     keep one fact
    search_memory   find what is remembered
    update_memory   put a new fact in the place of an old one
    forget_memory   put one memory into the trash

Nothing here is trusted: a model repeats what a document or a memory tells it. What it saves is the
person's own words only if their message bears it out (memory/gate.py), else it waits for review.
It changes and forgets only what it was shown in this very turn, a few in one reply, and each can be
undone; it can't purge. Each act is one transaction, together with its record in the reply
(`Ledger`), which writes nothing once a purge has come or the reply has ended.

A record holds no memory's text but points to it: {"memory": id}. What was forgotten or purged is
thereby gone from all records, and what was edited reads as it does now (`spelt_out`).
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.errors import AppError, InvalidInput, NotFound
from accounts.scope import Scope, entered
from accounts.text import clean_text, cut, one_line, required_text
from memory import edit, face, jobs
from memory.consolidate import Draft, confirm, consolidate, known_claim, subject_of, supersede
from memory.exchange import Speaker
from memory.folding import words
from memory.gate import FACT_CHARS, Claimed, refusal
from memory.json_answer import json_in
from memory.keys import spell
from memory.models import Memory, MemorySettings
from memory.profile import changed as profile_changed
from memory.prompts import harmless
from memory.recall import RecalledMemory
from memory.recall import record as record_recall
from memory.remember import embedded_or_later, make_findable
from memory.stop_words import STOP_WORDS
from memory.suspicion import reason_for_claim, reason_to_wait
from memory.tombstones import bar, barred
from memory.tool_prompts import FORGET, SAVE, SCHEMAS, SEARCH, UPDATE, is_id, named_in, spelt_out
from memory.wire import ToolCall

MOST_ACTS = 12  # in one reply
MOST_CHANGES = 5  # of them, that change or forget
QUERY_CHARS = 300
QUOTE_CHARS = 1_000  # of the person's words, looked at for what bears a fact out
TOLD_CHARS = 600  # of a memory that was found


# Kept with the memory; translated where it is shown.
NOT_SAID = gettext_noop("The assistant wanted to keep this; you did not say it in so many words.")


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the model may do for this person in this session, as it stood when the turn began."""

    saving: bool = False
    searching: bool = False
    generation: int = 0

    def __bool__(self) -> bool:
        return self.saving or self.searching


# For whoever reads it together with something else, in one message to the database; it gives one
# row, which `allowed` understands.
ALLOWED = """
select coalesce(bool_and(s.tools_on), true), coalesce(bool_and(s.recall_on), true),
  coalesce(bool_and(s.auto_store_on), true), coalesce((select t.auto_store_on
    from memory_tenantmemorysettings t where t.tenant_id = %(tenant)s), true),
  coalesce(max(s.generation), 0)
from memory_memorysettings s where s.tenant_id = %(tenant)s and s.user_id = %(user)s
"""


def allowed(row: Sequence[Any], *, storing: bool | None = None) -> Allowed:
    """Return what `ALLOWED` found; `storing` is the session's own switch, None where it has none.

    With recall off the model searches, changes and forgets nothing; with auto-store off it saves
    nothing. A tenant's "off" binds; a session's word goes before the person's.
    """
    tools_on, recall_on, auto_store_on, tenant_stores, generation = row
    stores = tenant_stores and (auto_store_on if storing is None else storing)
    return Allowed(bool(tools_on and stores), bool(tools_on and recall_on), generation)


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that the model did, as its reply keeps it: ids, and no memory's text.

    `memory` is what was saved, changed to, or forgotten. `refused` says that nothing was done.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    memory: UUID | None = None

    @property
    def refused(self) -> bool:
        return "error" in self.result

    def stored(self) -> dict[str, Any]:
        """Return the act for a column of JSON: {id, name, arguments, result, memory}."""
        return {
            "id": self.id,
            "name": self.name,
            "arguments": dict(self.arguments),
            "result": dict(self.result),
            "memory": str(self.memory) if self.memory else None,
        }


class Ledger(Protocol):
    """Where a reply's acts are written down; both are called inside the transaction of an act."""

    def hold(self) -> bool:
        """Lock the reply; False if it is written no more, and nothing may be done for it."""

    def write(self, acts: Sequence[Mapping[str, Any]]) -> None:
        """Keep these acts with the reply, all of them."""


class _Refused(Exception):
    """The model asked for what can't be done; it is told why."""


class _Overtaken(Exception):
    """A purge has come, or the reply has ended: nothing may be written any more."""


@dataclass(frozen=True, slots=True)
class _Done:
    """What came of a call, before it is written down."""

    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    memory: UUID | None = None


@dataclass
class Toolbox:
    """The tools in one turn: what the model has seen of the person's memories, and what it did.

    `question` and `said` are the id and the words of the person's message. Used from one thread at
    a time, outside a transaction; an act may embed a text and so wait for the embedder.
    """

    scope: Scope
    allowed: Allowed
    ledger: Ledger
    reply: UUID
    question: UUID
    said: str
    session_key: UUID | None = None
    acts: list[dict[str, Any]] = field(default_factory=list)
    seen: set[UUID] = field(default_factory=set)
    _ids: dict[str, UUID] = field(default_factory=dict)
    _changes: int = 0
    _made: int = 0

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools that the model may be offered, as JSON schemas of functions."""
        names = [SAVE] if self.allowed.saving else []
        names += [SEARCH, FORGET] if self.allowed.searching else []
        names += [UPDATE] if self.allowed.saving and self.allowed.searching else []
        return [SCHEMAS[name] for name in names]

    def show(self, memories: Sequence[RecalledMemory]) -> list[str]:
        """Return the handles by which the model may change or forget these, that stand before it.

        None where it may do neither.
        """
        self.seen |= {memory.id for memory in memories}
        handles = [self._handle(memory.id) for memory in memories]
        return handles if self.allowed.searching else []

    def _handle(self, memory: UUID) -> str:
        short = memory.hex[:8]
        if self._ids.setdefault(short, memory) == memory:
            return short
        self._ids[memory.hex] = memory
        return memory.hex

    def use(self, call: ToolCall) -> tuple[Act, str]:
        """Do what the model asks for; return the act, and what the model is told of it.

        What can't be done is told as {"error": a sentence}, and never raised.
        """
        self._made += 1
        try:
            if self._made > MOST_ACTS:  # nothing of it is written down: it would be told for ever
                act = _act(call, {}, {"error": "Enough for one reply. Answer the person now."})
                return act, self._told(act)
            verb = self._verbs().get(call.name)
            if verb is None:
                raise _Refused("There is no such tool.")
            act = self._written(call, verb(_arguments(call)))
        except _Refused as error:
            act = self._failed(call, str(error))
        except _Overtaken:
            act = _act(call, {}, {"error": "What is remembered was erased meanwhile."})
        except InvalidInput as error:
            act = self._failed(call, str(error))
        except AppError:
            act = self._failed(call, "It did not work. Tell the person so.")
        return act, self._told(act)

    def _verbs(self) -> dict[str, Callable[[Mapping[str, Any]], Callable[[], _Done]]]:
        verbs = {SAVE: self._save, SEARCH: self._search, UPDATE: self._update, FORGET: self._forget}
        offered = {schema["function"]["name"] for schema in self.schemas()}
        return {name: verb for name, verb in verbs.items() if name in offered}

    def _written(self, call: ToolCall, work: Callable[[], _Done]) -> Act:
        """Do the work and write it down, in one transaction, or neither."""
        with entered(self.scope):
            # The reply's row before the lock on what is remembered, as a purge has it.
            if not self.ledger.hold():
                raise _Overtaken
            jobs.hold(self.scope)
            generation = MemorySettings.objects.within(self.scope).values_list("generation")
            now = generation.first()
            if (now[0] if now else 0) != self.allowed.generation:
                raise _Overtaken
            done = work()
            act = _act(call, done.arguments, done.result, done.memory)
            acts = [*self.acts, act.stored()]
            self.ledger.write(acts)
        self.acts = acts
        return act

    def _failed(self, call: ToolCall, why: str) -> Act:
        act = _act(call, {}, {"error": why})
        with entered(self.scope):
            if self.ledger.hold():
                acts = [*self.acts, act.stored()]
                self.ledger.write(acts)
                self.acts = acts
        return act

    def _told(self, act: Act) -> str:
        texts = live_texts(self.scope, [act.stored()], session_key=self.session_key)
        return json.dumps(spelt_out(act.result, texts), ensure_ascii=False)

    # What each tool does. The first half may wait for the embedder; it gives the second, which is
    # run in the transaction.

    def _save(self, given: Mapping[str, Any]) -> Callable[[], _Done]:
        draft = self._draft(given)
        entry = embedded_or_later(draft)

        def work() -> _Done:
            self._refuse_barred()
            kept, fresh = self._keep(draft, entry)
            return _Done({"text": {"memory": str(kept.pk)}}, _outcome(kept, fresh), kept.pk)

        return work

    def _draft(self, given: Mapping[str, Any]) -> Memory:
        """Return the fact that the model gives, unsaved: the person's, or one that waits."""
        text = one_line(required_text(given.get("text"), what="text", max_chars=FACT_CHARS))
        quote = borne_out(text, self.said, given.get("quote"))
        owner = {"tenant_id": self.scope.tenant_id, "user_id": self.scope.user_id}
        fact = Memory(**owner, kind=Memory.Kind.FACT, text=text, session_key=self.session_key)
        if quote:
            fact.origin, fact.quote, fact.source = Memory.Origin.OWN_WORDS, quote, self.question
            fact.because = reason_for_claim(text) or reason_to_wait(self.said)
        else:
            # It has no source: no message says it.
            fact.origin, fact.trusted = Memory.Origin.ASSISTANT, False
            fact.because = reason_for_claim(text) or NOT_SAID
        fact.status = Memory.Status.WAITING if fact.because else Memory.Status.CURRENT
        return spell(fact)

    def _refuse_barred(self) -> None:
        if barred(self.scope, self.question):
            raise _Refused("Nothing may be remembered from this message.")

    def _keep(self, draft: Memory, entry: Any) -> tuple[Memory, bool]:
        """Return the fact as it is kept, and whether it is new; inside the transaction."""
        if entry is not None:
            outcome = consolidate(self.scope, [Draft(draft, entry)], at=timezone.now())
            kept = [*outcome.added, *outcome.confirmed]
            if not kept:
                raise _Refused("It does not fit what the person said before. Ask them.")
            profile_changed(self.scope)
            return Memory.objects.within(self.scope).get(pk=kept[0]), bool(outcome.added)
        # It waits for review, or for the embedder.
        same = Memory.objects.within(self.scope).facts().filter(key=draft.key)
        if same.filter(status=Memory.Status.DECLINED).exists():
            raise _Refused("The person has declined this before.")
        known = known_claim(self.scope, draft)
        if known is None:
            draft.save(force_insert=True)
            make_findable(self.scope, draft, entry)
            return draft, True
        return confirm(self.scope, known, at=timezone.now()), False

    def _search(self, given: Mapping[str, Any]) -> Callable[[], _Done]:
        asked = one_line(required_text(given.get("query"), what="query", max_chars=MOST_QUERY))
        query = cut(asked, QUERY_CHARS, "")
        found = face.recall(self.scope, query, session_key=self.session_key)
        if found.away:
            raise _Refused("Memory is not available right now.")

        def work() -> _Done:
            rows = [
                {
                    "id": self._handle(one.id),
                    "memory": str(one.id),
                    "kind": str(one.kind),
                    "since": one.at.astimezone(found.zone).date().isoformat(),
                    "score": round(one.score, 2),
                }
                for one in found.memories
            ]
            return _Done({"query": _own_part(query, self.said)}, {"found": rows})

        def recorded() -> _Done:
            done = work()
            record_recall(self.scope, reply=self.reply, recall=found)
            self.seen |= {one.id for one in found.memories}
            return done

        return recorded

    def _target(self, given: Mapping[str, Any]) -> UUID:
        """Return the memory that an id of this turn names."""
        if self._changes >= MOST_CHANGES:
            raise _Refused(
                "Enough changes for one reply. The person can do more on the memory page."
            )
        handle = str(given.get("id", "")).strip().strip("[]\"'").lower()
        memory = self._ids.get(handle.replace("-", "")) or self._ids.get(handle[:8])
        if memory is None:
            raise _Refused("No memory with this id was shown to you now. Search for it first.")
        return memory

    def _update(self, given: Mapping[str, Any]) -> Callable[[], _Done]:
        target = self._target(given)
        draft = self._draft(given)
        entry = embedded_or_later(draft)

        def work() -> _Done:
            self._refuse_barred()
            old = Memory.objects.within(self.scope).current().facts().filter(pk=target).first()
            if old is None:
                raise _Refused("Only a fact that holds now can be changed. Search again.")
            if subject_of(old.text) != subject_of(draft.text):
                raise _Refused("It is about somebody else. Save it as a new memory instead.")
            if draft.key == old.key:
                raise _Refused("It is remembered like this already.")
            if draft.status == Memory.Status.WAITING:
                draft.would_replace = old.pk
            kept, fresh = self._keep(draft, entry)
            if not fresh:
                # It may be the old one itself, in other words, or what Undo must not take away.
                raise _Refused(
                    "It is remembered like this already, or waits for the person's review."
                    " If an old memory holds no longer, forget that one."
                )
            self._changes += 1
            outcome = _outcome(kept, fresh)
            if kept.status == Memory.Status.CURRENT:
                supersede(self.scope, old.pk, by=kept, at=timezone.now())
                outcome = {"outcome": "changed"}
            arguments = {"id": self._handle(target), "text": {"memory": str(kept.pk)}}
            return _Done(arguments, outcome, kept.pk)

        return work

    def _forget(self, given: Mapping[str, Any]) -> Callable[[], _Done]:
        target = self._target(given)

        def work() -> _Done:
            gone = edit.one(self.scope, target)
            if gone.status == Memory.Status.TRASH:
                raise _Refused("It is forgotten already.")
            self._changes += 1
            edit.forget(self.scope, memory=target)
            if _repeats(self.said, gone):
                # The message that asks for it says it once more: it must not be learnt from that.
                bar(self.scope, [self.question])
            self._blank_queries(gone)
            return _Done({"id": self._handle(target)}, {"outcome": "forgotten"}, target)

        return work

    def _blank_queries(self, gone: Memory) -> None:
        """Take out of this reply's records what the model looked for in the words forgotten."""
        for act in self.acts:
            if act["name"] == SEARCH and _shares(str(act["arguments"].get("query", "")), gone):
                act["arguments"] = {"query": ""}


MOST_QUERY = 4_000


def _act(
    call: ToolCall,
    arguments: Mapping[str, Any],
    result: Mapping[str, Any],
    memory: UUID | None = None,
) -> Act:
    return Act(call.id, call.name, arguments, result, memory)


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    """Return a call's arguments, of which broken or fenced JSON is forgiven where it can be."""
    if not call.arguments.strip():
        return {}
    try:
        given = json_in(call.arguments)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise _Refused("The arguments are no JSON object.")
    return given


def _outcome(kept: Memory, fresh: bool) -> dict[str, Any]:
    if kept.status == Memory.Status.WAITING:
        return {"outcome": "not saved yet: it waits for the person's own review"}
    return {"outcome": "saved" if fresh else "known already"}


_SENTENCES = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")


def borne_out(text: str, said: str, quote: object = None) -> str:
    """Return the person's words that bear a fact out, by the gate's rules; empty if none do.

    The model's own `quote` is tried first, then each sentence of what was said.
    """
    offered = [clean_text(quote)] if isinstance(quote, str) and quote.strip() else []
    sentences = [one.strip() for one in _SENTENCES.findall(said) if one.strip()]
    for words_said in [cut(one, QUOTE_CHARS, "") for one in [*offered, *sentences[:40]]]:
        claim = Claimed(text=text, first_person="", quote=words_said)
        if not refusal(claim, said):
            return cut(words_said, FACT_CHARS)
    return ""


def _content(text: str) -> set[str]:
    return {word for word in words(text) if word not in STOP_WORDS}


def _own_part(query: str, said: str) -> str:
    """Return those words of a query that the person's message has too.

    The others may be a memory's, and a record would keep them when it is forgotten.
    """
    own = set(words(said))
    return " ".join(word for word in query.split() if own.issuperset(words(word)))


def _repeats(said: str, memory: Memory) -> bool:
    """Tell whether a message says what a memory says: half of its words, a number or a name."""
    text = f"{memory.text} {memory.answer}"
    content = _content(text)
    again = content & _content(said)
    return bool(again) and (2 * len(again) >= len(content) or not again.isdisjoint(_marks(text)))


def _marks(text: str) -> set[str]:
    """Return the words that may tell by themselves what a text is about: numbers and names."""
    marks = {word for word in words(text) if any(character.isdigit() for character in word)}
    for sentence in _SENTENCES.findall(text):
        for word in sentence.split()[1:]:
            if word.strip("\"'“”„‘’«»(")[:1].isupper():
                marks.update(words(word))
    return marks - STOP_WORDS


def _shares(query: str, memory: Memory) -> bool:
    return bool(_content(query) & _content(f"{memory.text} {memory.answer}"))


# Records as they read now.


def live_texts(
    scope: Scope, records: Sequence[Any], *, session_key: UUID | None = None
) -> dict[UUID, str]:
    """Return the texts, for a model, of the memories in these records that may be recalled now.

    What is past or over, forgotten, expired, untrusted, waiting, or kept to another session is not
    among them. One query, and none where no memory is named.
    """
    wanted = named_in(list(records))
    if not wanted:
        return {}
    with entered(scope):
        rows = Memory.objects.within(scope).current().holding()
        rows = rows.filter(pk__in=wanted, trusted=True)
        return {memory.pk: _line(memory) for memory in rows.within_reach(session_key)}


def _line(memory: Memory) -> str:
    said = cut(harmless(memory.text), TOLD_CHARS)
    if memory.kind != Memory.Kind.EXCHANGE or not memory.answer:
        return said
    answer = cut(harmless(memory.answer), TOLD_CHARS // 2)
    return f"the person said: {said} / the {Speaker.ASSISTANT}'s words, not theirs: {answer}"


# As the chat shows them.


@dataclass(frozen=True, slots=True)
class ShownAct:
    """An act as it is shown under its reply: what sort, of what, and whether it is undone.

    Sorts: saved, waits, changed, forgot, searched, refused. `text` is the memory's as it is now,
    and never that of a forgotten one. `number` is its place among the reply's acts.
    """

    number: int
    sort: str
    text: str = ""
    count: int = 0
    undone: bool = False
    can_undo: bool = False
    memory: UUID | None = None


def shown_acts(
    scope: Scope, by_reply: Mapping[UUID, Sequence[Mapping[str, Any]]]
) -> dict[UUID, list[ShownAct]]:
    """Return each reply's acts as they are shown; in one query, and none where nothing was done."""
    ids = {
        UUID(act["memory"])
        for acts in by_reply.values()
        for act in acts
        if is_id(act.get("memory"))
    }
    kept: dict[UUID, Memory] = {}
    if ids:
        with entered(scope):
            kept = Memory.objects.within(scope).unexpired().in_bulk(ids)
    return {
        reply: [_shown(number, act, kept) for number, act in enumerate(acts)]
        for reply, acts in by_reply.items()
        if acts
    }


def _shown(number: int, act: Mapping[str, Any], kept: Mapping[UUID, Memory]) -> ShownAct:
    name, result = act.get("name"), act.get("result")
    if not isinstance(result, Mapping) or "error" in result:
        return ShownAct(number, "refused")
    if name == SEARCH:
        return ShownAct(number, "searched", count=len(result.get("found", [])))
    pk = UUID(act["memory"]) if is_id(act.get("memory")) else None
    memory = kept.get(pk) if pk else None
    gone = memory is None or memory.status == Memory.Status.TRASH
    if name == FORGET:
        return ShownAct(number, "forgot", undone=not gone, can_undo=memory is not None, memory=pk)
    if name not in {SAVE, UPDATE}:
        return ShownAct(number, "refused")
    sort = "changed" if name == UPDATE else "saved"
    if memory is not None and memory.status in {Memory.Status.WAITING, Memory.Status.DECLINED}:
        sort = "waits"
    return ShownAct(
        number,
        sort,
        text="" if memory is None or gone else memory.text,
        undone=gone,
        # What was known before this reply is not this reply's to take back.
        can_undo=memory is not None and result.get("outcome") != "known already",
        memory=pk,
    )


def undo_act(
    scope: Scope, acts: Sequence[Mapping[str, Any]], *, number: int, redo: bool = False
) -> None:
    """Take back one of a reply's acts; with `redo`, do again what was taken back.

    Asked for twice it is the same as once. Raises NotFound for what is no act or is erased,
    InvalidInput where there is nothing to undo. Call it outside a transaction.
    """
    if not 0 <= number < len(acts):
        raise NotFound
    shown = _shown(number, acts[number], {})
    if shown.memory is None:
        raise InvalidInput(_("There is nothing to undo."))
    memory = edit.one(scope, shown.memory)
    shown = _shown(number, acts[number], {memory.pk: memory})
    if not shown.can_undo:
        raise InvalidInput(_("There is nothing to undo."))
    if shown.undone != redo:
        return
    if memory.status == Memory.Status.TRASH:
        version = edit.undoable(scope, [memory]).get(memory.pk)
        edit.undo(scope, memory=memory.pk, version=version)
    else:
        edit.forget(scope, memory=memory.pk, restore=shown.sort != "forgot")
