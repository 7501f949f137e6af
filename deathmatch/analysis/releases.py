"""Then and now: which release and settings a claim is decided on.

A rule names servers, each with its first configuration. `[then.<source>]` and `[now.<source>]` of
claims.toml, or a claim's own `then` and `now`, say what of theirs is nearest to the source's and
what is today's; it stands in wherever all that the rule compares of that server ran so. The header
of claims.toml explains it. `ages` are the years of the releases that a rule compares.
"""

from dataclasses import dataclass

from deathmatch.analysis import published, selecting
from deathmatch.plan import files


def then(dataset: str, claim: dict) -> dict:
    """Return the claim on the release and settings nearest to the source's that ran."""
    return _replaced(claim, _chosen(dataset, claim, "then"))


def now(dataset: str, claim: dict) -> dict:
    """Return the claim on today's release.

    Where it ranges over servers, it compares the newest measured release of each system.
    """
    claim = _replaced(claim, _chosen(dataset, claim, "now"))
    return claim | {"rule": _of_today(dataset, claim["experiment"], claim["rule"])}


def _of_today(dataset: str, experiment: str, rule: dict) -> dict:
    """Return the rule with TODAY wherever it ranges over servers that have a newer release."""
    if "rules" in rule:
        return rule | {"rules": [_of_today(dataset, experiment, part) for part in rule["rules"]]}
    servers = selecting.ranged_servers(dataset, experiment, rule)
    return rule if files.newest(servers) == servers else rule | {selecting.TODAY: True}


def _chosen(dataset: str, claim: dict, when: str) -> dict[str, dict]:
    """Return the columns that stand in for each server: of the first that ran, if one did.

    Of servers that are compared in one release only, others stand in for all that the claim names,
    or for none.
    """
    stand_ins = claim.get(when, published.stand_ins(when, claim["source"]))
    chosen = {
        server: columns
        for server, options in stand_ins.items()
        if (columns := _first_that_ran(dataset, claim, server, published.as_list(options)))
    }
    named = _servers([claim["rule"], claim.get("needs", {})])
    others = {server for server, columns in chosen.items() if "server" in columns}
    for servers in published.together():
        if (named & servers) - others:
            chosen = {
                name: columns for name, columns in chosen.items() if name not in servers & others
            }
    return chosen


def _first_that_ran(dataset: str, claim: dict, server: str, options: list[dict]) -> dict | None:
    for columns in options:
        rule = replaced(claim["rule"], server, columns)
        pairs = zip(published.selectors(claim["rule"]), published.selectors(rule), strict=True)
        after = [new for old, new in pairs if old.get("server") == server]
        # With one side on the old release and the other on the new, releases would be compared.
        if after and all(_ran(dataset, claim, selector) for selector in after):
            return columns
    return None


def _ran(dataset: str, claim: dict, selector: dict) -> bool:
    table = selecting.table_of(claim["rule"])
    return all(
        selecting.selected(dataset, claim["experiment"], plain, table=table) is not None
        for plain in selecting.divided_selectors(selector)
    )


def _replaced(claim: dict, chosen: dict[str, dict]) -> dict:
    """Return the claim with the columns that stand in for each server."""
    for server, columns in chosen.items():
        claim = claim | {"rule": replaced(claim["rule"], server, columns)}
        if "needs" in claim:
            claim["needs"] = replaced(claim["needs"], server, columns)
    return claim


def _servers(node) -> set[str]:
    """Return the servers that a rule, or a part of one, names."""
    if isinstance(node, list):
        return {name for part in node for name in _servers(part)}
    if not isinstance(node, dict):
        return set()
    named = {name for part in node.values() for name in _servers(part)}
    if "server" in node:
        named.add(node["server"])
    if node.get("over") == "server":
        levels = [*node.get("levels", []), *node.get("ascending", []), node.get("level")]
        named |= {level for level in levels if isinstance(level, str)}
    return named


def replaced(node, server: str, columns: dict):
    """Return a rule, or a part of one, with the columns of every selector of a server replaced."""
    if isinstance(node, list):
        return [replaced(part, server, columns) for part in node]
    if not isinstance(node, dict):
        return node
    bare = node.get("over") == "server"
    new = {key: replaced(part, server, columns) for key, part in node.items()}
    for key in ("levels", "ascending") if bare else ():
        if key in new:
            new[key] = [_named(level, server, columns) for level in new[key]]
    if bare and "level" in new:
        new["level"] = _named(new["level"], server, columns)
    return new | columns if node.get("server") == server else new


def _named(level, server: str, columns: dict):
    return {"server": server} | columns if level == server else level


WITHIN_YEARS = 3
"""Software is of a source's time if its series began no later than this after the source."""


@dataclass(frozen=True)
class Age:
    """A release that a rule compares: `series` is the year when its series began, `year` its own.

    Both are None where no registry holds a date.
    """

    name: str
    series: int | None
    year: int | None

    @property
    def phrase(self) -> str:
        """Return "Tornado 0.2 (2010)" or "OTP 25.2.3 (series of 2022, released 2023)".

        Of a release that stands on a later runtime, "Cowboy 2.8.0 (2020, on a runtime of 2022)".
        """
        if self.year is None:
            return f"{self.name} (no date)"
        if self.series == self.year:
            return f"{self.name} ({self.year})"
        if self.series > self.year:
            return f"{self.name} ({self.year}, on a runtime of {self.series})"
        return f"{self.name} (series of {self.series}, released {self.year})"


def ages(dataset: str, claim: dict) -> tuple[Age, ...]:
    """Return the releases that a claim's rule compares; instruments are none, nor what is gone."""
    found = []
    for name in _server_names(dataset, claim):
        if not files.path_of("server", name).is_file():
            continue
        server = files.server(name)
        release = server.release
        if release and not server.instrument:
            found.append(Age(release.name, release.series_year or release.year, release.year))
    return tuple(dict.fromkeys(found))


def of_the_time(claim: dict, compared: tuple[Age, ...]) -> bool:
    """Return whether all releases are within WITHIN_YEARS of the claim's source; False of none."""
    last = int(claim["source"][-4:]) + WITHIN_YEARS
    return bool(compared) and all(age.series is not None and age.series <= last for age in compared)


def _server_names(dataset: str, claim: dict) -> list[str]:
    """Return the servers that a rule names, and those that it ranges over."""
    rule = claim["rule"]
    named = [selector["server"] for selector in published.selectors(rule) if "server" in selector]
    for part in (rule, *rule.get("rules", [])):
        named += selecting.ranged_servers(dataset, claim["experiment"], part)
    return list(dict.fromkeys(named))
