"""The report on a dataset that lacks part of the study: its front, from its notebook's values."""

NOTEBOOK = "00-findings"
"""The notebook that makes all that a report shows."""
NAME, PAPER = "report", "deathmatch"
"""The names of the files of a report and of a paper, without a suffix."""

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
    head = f"---\ntitle: >-\n  {title}\nsubtitle: >-\n  {{value}}`00-findings.machine`\n---\n\n"
    if new:
        shown = [_NEW, _SERVERS, _FINDINGS, _MEASURED, _REST]
    else:
        shown = [_FINDINGS, _MEASURED, _SERVERS, _REST]
    lines = "".join([head, *shown]).replace("data/DATASET/", f"data/{dataset}/").split("\n")
    made = (line for line in lines if line[:7] != "{show}`" or line.split("`")[1] in labels)
    return "\n".join(made)
