"""A session's exchanges as memory is told of them."""

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from accounts.scope import Scope, entered, read_once
from chatapp.models import ChatSession, Message
from memory.exchange import Exchange, SessionLabel, Speaker, Utterance

TAIL = 6

_SPEAKERS = {
    Message.Role.USER.value: Speaker.PERSON,
    Message.Role.ASSISTANT.value: Speaker.ASSISTANT,
}


# The reply, its question, and what stands before them; nothing while the reply is being written.
_EXCHANGE = """
with reply as (
  select r.session_id, r.position, q.id as question_id, q.position as question_position,
    coalesce(jsonb_path_exists(r.tool_calls,
      '$[*] ? (@.name == "forget_memory" && !exists(@.result.error))'), false) as forgets,
    jsonb_path_query_array(r.tool_calls, '$[*] ? ((@.name == "save_memory"
      || @.name == "update_memory") && !exists(@.result.error)).memory ? (@ != null)') as saved
  from chatapp_message r join chatapp_message q on q.id = r.question_id
    and q.tenant_id = r.tenant_id and q.user_id = r.user_id
  where r.tenant_id = %(tenant)s and r.user_id = %(user)s and r.id = %(reply)s
    and r.role = 'assistant' and r.status not in ('waiting', 'streaming')
), before as (
  select m.id from chatapp_message m, reply
  where m.tenant_id = %(tenant)s and m.user_id = %(user)s and m.session_id = reply.session_id
    and m.position < reply.question_position and m.role in ('user', 'assistant') and m.text <> ''
  order by m.position desc limit %(tail)s
)
select m.session_id, m.id, m.text, m.created_at, m.role, m.position, reply.forgets,
  reply.saved
from chatapp_message m, reply
where m.tenant_id = %(tenant)s and m.user_id = %(user)s
  and (m.id in (reply.question_id, %(reply)s) or m.id in (select id from before))
order by m.id = %(reply)s, m.id = reply.question_id, m.position
"""


def read_exchange(scope: Scope, reply_id: UUID) -> Exchange | None:
    """Return the exchange that ends in this reply, with what was said just before.

    None if it is gone, or if its reply is still being written.
    """
    given = {"tenant": scope.tenant_id, "user": scope.user_id, "reply": reply_id, "tail": TAIL}
    rows = read_once(scope, _EXCHANGE, given)
    if not rows:
        return None
    *before, question, reply = [_utterance(*row[1:-2]) for row in rows]
    session, forgets, kept = rows[0][0], rows[0][-2], rows[0][-1]
    saved = [UUID(one) for one in json.loads(kept or "[]")]
    return Exchange(question, reply, session, before, forgets=forgets, saved=saved)


def read_sessions(scope: Scope, keys: Sequence[UUID]) -> dict[UUID, SessionLabel]:
    """Return the title of each of these sessions that is still there."""
    with entered(scope):
        kept = ChatSession.objects.within(scope).filter(pk__in=keys).values_list("pk", "title")
        return {pk: SessionLabel(pk, title) for pk, title in kept}


def _utterance(id: UUID, text: str, at: datetime, role: str, position: int) -> Utterance:
    return Utterance(id, text, at, _SPEAKERS[role], position)
