"""The report on a dataset that lacks part of the study: its front, from its notebook's values."""

NOTEBOOK = "00-findings"
"""Makes all that a report shows."""
NAME, PAPER = "report", "deathmatch"
"""What the files of a report are called, and those of a paper."""

_NEW = "# Servers that are not in the study {#sec-servers}\n\n"
_SERVERS = """{show}`tbl-measured-servers`

{show}`fig-measured-servers`

"""
_FINDINGS = """# The study's findings {#sec-findings}

{show}`tbl-findings`

{show}`fig-findings`

"""
_MEASURED = """# What was measured {#sec-measured}

{value}`00-findings.measured` {value}`00-findings.points`

"""
_REST = """# Where the rest is {#sec-rest}

- `explore.html`, beside this file: every variant and server, to sort, filter and compare.
- `data/DATASET/`: a folder for each trial with its raw logs, and the tables.
- `paper/reference/deathmatch.pdf`: the study, which explains each finding.

**Next:** measure a server of your own: `./shell deathmatch new-server mine`, then
`./shell deathmatch measure mine`.

{show}`tbl-findings-numbers`
"""


def front(labels: set[str], values: dict[str, str], dataset: str) -> str:
    """Return the report's text, with a role for each figure and number.

    `labels` are of the figures and tables that its notebook made, `values` its numbers. Servers
    that the study lacks come first.
    """
    new = values.get(f"{NOTEBOOK}.new")
    title = "{value}`00-findings.new`" if new else "{value}`00-findings.headline` here"
    head = f"---\ntitle: >-\n  {title}\n"
    head += "subtitle: >-\n  {value}`00-findings.machine`\n---\n\n"
    if new:
        shown = [_NEW, _SERVERS, _FINDINGS, _MEASURED, _REST]
    else:
        shown = [_FINDINGS, _MEASURED, _SERVERS, _REST]
    text = head + "".join(shown)
    text = text.replace("data/DATASET/", f"data/{dataset}/")
    return "\n".join(line for line in text.split("\n") if _made(line, labels))


def _made(line: str, labels: set[str]) -> bool:
    """Return whether a line shows nothing, or what the notebook made."""
    return not line.startswith("{show}`") or line.split("`")[1] in labels
