"""Whether the compiled requirements fit what they are compiled from; needs no network."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

MEND = "run script/fix --requirements"
PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[^]]*])?==(?P<version>[^ ;\\]+)")


@dataclass(slots=True)
class Pin:
    """One package of a compiled file."""

    name: str
    version: Version
    hashes: int = 0
    asked_for: bool = False


def faults(folder: Path, name: str) -> list[str]:
    """What is wrong with NAME.txt as made from NAME.in, a sentence each; empty if all is well."""
    source, compiled = folder / f"{name}.in", folder / f"{name}.txt"
    pins = {(pin.name, pin.version): pin for pin in _pins(compiled, source.name)}
    versions: dict[str, list[Version]] = {}
    for pin in pins.values():
        versions.setdefault(pin.name, []).append(pin.version)
    wanted = {canonicalize_name(asked.name): asked for asked in _asked(source)}
    found = []
    for key, asked in wanted.items():
        pinned = versions.get(key, [])
        if not pinned:
            found.append(f"{compiled.name} lacks {asked}: {MEND}.")
        elif not all(asked.specifier.contains(version) for version in pinned):
            pin_text = ", ".join(map(str, pinned))
            found.append(f"{compiled.name} pins {asked.name} {pin_text}, not {asked}: {MEND}.")
    found += [
        f"{compiled.name} still has {pin.name}, which {source.name} no longer names: {MEND}."
        for pin in pins.values()
        if pin.asked_for and pin.name not in wanted
    ]
    found += [
        f"{compiled.name} has no hash for {pin.name}: {MEND}."
        for pin in pins.values()
        if not pin.hashes
    ]
    return found


def disagreements(folder: Path, one: str, other: str) -> list[str]:
    """Packages that two compiled files pin to different versions; they are installed together."""
    first = {pin.name: pin.version for pin in _pins(folder / f"{one}.txt", f"{one}.in")}
    second = _pins(folder / f"{other}.txt", f"{other}.in")
    return [
        f"{one}.txt pins {pin.name} {first[pin.name]}, {other}.txt {pin.version}: {MEND}."
        for pin in second
        if pin.name in first and first[pin.name] != pin.version
    ]


def _asked(file: Path) -> Iterator[Requirement]:
    for line in file.read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text and not text.startswith("-"):
            yield Requirement(text)


def _pins(file: Path, source: str) -> Iterator[Pin]:
    pin: Pin | None = None
    for line in file.read_text().splitlines():
        if match := PINNED.match(line):
            if pin:
                yield pin
            pin = Pin(canonicalize_name(match["name"]), Version(match["version"]))
        elif pin and "--hash=" in line:
            pin.hashes += 1
        elif pin and re.search(rf"#.*-r {re.escape(source)}$", line):
            pin.asked_for = True
    if pin:
        yield pin
