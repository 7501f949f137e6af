"""A rule: a statement that holds of sound evidence, and a function that looks for what breaks it.

Modelled on MLPerf's submission checker: identifiers never change and are never used again, and
each rule names the clause that it enforces.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from deathmatch.errors import UserError, suggestions


@dataclass(frozen=True)
class Finding:
    """A fault: what was seen, and where.

    `remedy` is set where the rule's own does not say enough, such as a command with a host's
    values.
    """

    what: str
    where: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Unknown:
    """Where a rule could not look, and why."""

    why: str
    where: str = ""


Seen = str | Finding | Unknown
Look = Callable[..., Iterable[Seen]]
Scope = Callable[[Any], Iterable[tuple]]


def whole(evidence: object) -> list[tuple]:
    """Return the scope of a rule that looks at all evidence at once and says itself where."""
    return [("", evidence)]


@dataclass(frozen=True)
class Rule:
    """A rule.

    `statement` says what holds of sound evidence, or what a fault means, and `clause` where that
    can be read up. `look` is pure. It is called for each member of `scope`: (where, *what it
    takes); the text of a finding alone is enough, `where` is then the member's. Evidence of an
    older schema than `since` cannot be judged.
    """

    id: str
    severity: str
    clause: str
    statement: str
    look: Look = field(repr=False)
    remedy: str = ""
    scope: Scope = whole
    since: int = 1

    def seen(self, evidence: object) -> Iterator[Finding | Unknown]:
        """Return its findings, and where it could not look."""
        for where, *member in self.scope(evidence):
            for seen in self.look(*member):
                finding = Finding(seen) if isinstance(seen, str) else seen
                yield finding if finding.where else replace(finding, where=where)


@dataclass
class Rules:
    """The rules of a module, in the order of their definitions, with what most have in common."""

    remedy: str = ""
    scope: Scope = whole
    kind: type[Rule] = Rule
    rules: list[Rule] = field(default_factory=list)

    def add(
        self, id: str, severity: str, clause: str, remedy: str = "", *, since: int = 1,
        scope: Scope | None = None, **more: Any,
    ) -> Callable[[Look], Rule]:  # fmt: skip
        """Return a decorator that registers a function as a rule.

        The rule's statement is the first paragraph of the function's docstring; `more` are fields
        of a `kind` of rules that has more.
        """

        def register(look: Look) -> Rule:
            statement = " ".join((look.__doc__ or "").partition("\n\n")[0].split())
            rule = self.kind(
                id, severity, clause, statement, look, remedy or self.remedy, scope or self.scope,
                since, **more,
            )  # fmt: skip
            self.rules.append(rule)
            return rule

        return register


def check_names(rules: Iterable[Rule], names: Iterable[str], where: str, title: str) -> None:
    """Raise UserError if a name is not the identifier of a rule; `title` names the set of rules."""
    known = sorted(rule.id for rule in rules)
    for name in names:
        if name not in known:
            raise UserError(
                f"there is no rule {name!r} of {title}",
                where=where,
                remedy=suggestions(name, known),
            )
