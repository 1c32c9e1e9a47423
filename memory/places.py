"""Where a unit of search stands: one number that says its session and what stands beside it."""

import hashlib
from uuid import UUID

from memory.ranking import SESSION_BITS

_POSITIONS = 1 << SESSION_BITS


def place_in_session(session: UUID, position: int) -> int:
    """Return the place of a message: never negative, its neighbours at one more and one less.

    The session's part is a hash. Two sessions with the same would blur the search of one person,
    and do no other harm.
    """
    number = _hash(session.bytes) >> (1 + SESSION_BITS)
    return number << SESSION_BITS | position % _POSITIONS


def place_alone(memory: UUID, part: int = 0) -> int:
    """Return the place of what stands in no session: negative, far from any other."""
    return -1 - (_hash(memory.bytes + bytes([part])) >> 2)


def _hash(of: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(of, digest_size=8).digest(), "big")
