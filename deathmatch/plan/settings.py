"""What `snakemake` measures and publishes: `config/config.yaml`, and `--config` over it."""

from pydantic import Field

from deathmatch.plan.spec import Many, Spec

Chosen = str | Many[str]


class Settings(Spec):
    """What snakemake measures and publishes."""

    dataset: str = Field(description="A file in config/datasets/.")
    testbed: str = Field(description="A file in config/testbeds/.")
    servers: Chosen = Field(
        description='"all", a list, or names joined by commas: folders in servers/, each measured '
        "in every experiment of the dataset that it serves."
    )
    experiments: Chosen = Field(
        description='"all", a list, or names joined by commas: files in experiments/.'
    )
    compare: str = Field(description="A second dataset to compare with the first; empty for none.")
