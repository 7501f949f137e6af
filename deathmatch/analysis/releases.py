"""Then and now: which release and settings a claim is decided on.

A rule names today's servers, each with its first configuration. `[then.<source>]` of claims.toml,
or a claim's own `then`, says what of theirs is nearest to the source's; it stands in
wherever all that the rule compares of that server ran so.
"""

from deathmatch.analysis import published, rules


def then(dataset: str, claim: dict) -> dict:
    """Return the claim on the release and settings nearest to the source's that ran."""
    nearest = claim.get("then", published.nearest().get(claim["source"], {}))
    return _replaced(dataset, claim, nearest)


def now(dataset: str, claim: dict) -> dict:
    """Return the claim on today's release and tuned settings."""
    return _replaced(dataset, claim, claim.get("now", {}))


def _replaced(dataset: str, claim: dict, stand_in: dict) -> dict:
    for server, columns in stand_in.items():
        rule = replaced(claim["rule"], server, columns)
        chosen = [
            after
            for before, after in zip(
                published.selectors(claim["rule"]), published.selectors(rule), strict=True
            )
            if before.get("server") == server
        ]
        # One side on the old release and the other on the new would compare releases.
        if chosen and all(_ran(dataset, claim, selector) for selector in chosen):
            claim = claim | {"rule": rule}
            if "needs" in claim:
                claim["needs"] = replaced(claim["needs"], server, columns)
    return claim


def _ran(dataset: str, claim: dict, selector: dict) -> bool:
    base = {key: level for key, level in selector.items() if key != "relative_to"}
    both = [base, base | selector.get("relative_to", {})]
    return all(rules.selected(dataset, claim["experiment"], one) is not None for one in both)


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
