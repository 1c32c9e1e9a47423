"""Time zones that a person may live in."""

import zoneinfo
from functools import cache


@cache
def zone_names() -> tuple[str, ...]:
    """Return the names of all places and UTC, in order; the machine's list, read once."""
    places = {name for name in zoneinfo.available_timezones() if "/" in name}
    return tuple(sorted({name for name in places if not name.startswith("Etc/")} | {"UTC"}))


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """Return the person's time zone; UTC where the name means none."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return zoneinfo.ZoneInfo("UTC")


def known_zone(name: str) -> str:
    """Return the name if it is one that we know (browsers also send old names), else UTC."""
    return name if name in zone_names() or name in zoneinfo.available_timezones() else "UTC"
