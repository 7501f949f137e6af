"""What a fact is: how it is read from what the probe printed, its type, and how it is shown.

A part of a host is a frozen dataclass. Each of its fields is a fact in SI units, and None where it
is unknown; `unknown` then has the reason. Reading, the report and the trial's record derive from
these fields.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from deathmatch.hosts.audit.printed import Unknown


@dataclass(frozen=True)
class Source:
    """Where a fact comes from: a function of what was printed, and the files that it needs.

    The paths of files are patterns of glob(7).
    """

    read: Callable[[Any], Any]
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fact:
    """A fact's source, its title in the report and how its value is shown there.

    A fact without a title is not in the report; `changing` facts can change between two trials.
    """

    source: Source
    title: str = ""
    show: Callable[[Any], str] = str
    changing: bool = False


def fact(
    source: Source | Callable[[Any], Any], title: str = "", show: Callable[[Any], str] = str,
    *, changing: bool = False,
) -> Any:  # fmt: skip
    """Return a dataclass field that is a fact."""
    source = source if isinstance(source, Source) else Source(source)
    return field(metadata={"fact": Fact(source, title, show, changing)})


@dataclass(frozen=True, kw_only=True)
class Part:
    """Facts of one kind; `unknown` has the reason for each that is None."""

    unknown: dict[str, str] = field(default_factory=dict)


Made = TypeVar("Made", bound=Part)


def facts(part: type[Part] | Part) -> Iterator[tuple[str, Fact]]:
    """Return the names of a part's fields, each with its fact."""
    return ((f.name, f.metadata["fact"]) for f in fields(part) if "fact" in f.metadata)


def read(part: type[Made], printed: object, **more: Any) -> Made:
    """Return a part with each fact that can be read, and the reason for each that cannot.

    `more` are its fields that are no facts.
    """
    values: dict[str, Any] = {}
    unknown = {}
    for name, definition in facts(part):
        try:
            values[name] = definition.source.read(printed)
        except Unknown as reason:
            values[name], unknown[name] = None, str(reason)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            values[name], unknown[name] = None, f"not understood: {error!r}"
    return part(**values, **more, unknown=unknown)


def rows(part: Part) -> Iterator[tuple[str, str]]:
    """Return the title and the text of each fact that is in the report."""
    for name, definition in facts(part):
        value = getattr(part, name)
        if definition.title:
            yield definition.title, "unknown" if value is None else definition.show(value)


def changing(part: Part) -> dict[str, Any]:
    """Return the facts that can change between two trials, and why some of them are unknown."""
    names = {name for name, definition in facts(part) if definition.changing}
    return picked(part, names)


def picked(part: Part, names: set[str]) -> dict[str, Any]:
    """Return some facts of a part by their names, and why the unknown ones of these are."""
    values = {name: getattr(part, name) for name, _ in facts(part) if name in names}
    unknown = {name: why for name, why in part.unknown.items() if name in names}
    return values | ({"unknown": unknown} if unknown else {})
