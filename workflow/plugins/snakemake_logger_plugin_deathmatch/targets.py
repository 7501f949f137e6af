"""Which job a node is to do, read from the command line of the Snakemake that runs there.

Snakemake writes a wildcard that holds a comma in quotes, `variant="backlog=1,schedulers=one"`, and
then splits at that comma as well: no trial of two factors could be done on a node.
"""

import re

# A comma after which the number of quotes is even.
BETWEEN = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')


def split(target: str) -> tuple[str, dict[str, str]]:
    """Return the rule's name and the wildcards of a target, `rule:name=value,name="a,b"`."""
    rule, _, rest = target.partition(":")
    pairs = (pair.partition("=") for pair in BETWEEN.split(rest) if pair)
    return rule, {name: value.strip('"') for name, _, value in pairs}


def mend() -> None:
    """Have Snakemake read the targets of a job as it wrote them."""
    from snakemake import cli
    from snakemake_interface_executor_plugins.utils import TargetSpec

    cli.parse_target_jobs_cli_args = lambda targets: (
        None if targets is None else [TargetSpec(*split(target)) for target in targets]
    )
