"""Read the job of a node from the command line of the Snakemake that runs there.

Snakemake 9.23.1 writes a wildcard that holds a comma in quotes, `variant="backlog=1,accept=one"`,
and then splits at that comma as well, so a trial with two factors could not run on a node.
"""

import re

# A comma after which the number of quotes is even.
BETWEEN = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
READER = "parse_target_jobs_cli_args"


def split(target: str) -> tuple[str, dict[str, str]]:
    """Return the rule's name and the wildcards of a target, `rule:name=value,name="a,b"`."""
    rule, _, rest = target.partition(":")
    pairs = (pair.partition("=") for pair in BETWEEN.split(rest) if pair)
    return rule, {name: value.strip('"') for name, _, value in pairs}


def read_quoted() -> None:
    """Make Snakemake read the targets of a job as it wrote them, with commas in quotes.

    A later Snakemake may lack the function; then nothing is changed.
    """
    from snakemake import cli
    from snakemake_interface_executor_plugins.utils import TargetSpec

    if hasattr(cli, READER):
        setattr(cli, READER, lambda targets: (
            None if targets is None else [TargetSpec(*split(target)) for target in targets]
        ))  # fmt: skip
