"""A testbed: where client and server run, one file `config/testbeds/<name>.toml`."""

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from deathmatch.plan.spec import AS_WRITTEN, DISTINCT, Level, Many, NamedSpec, Spec, contradiction

CPUS = r"^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*|first|last|all)$"


def _of_a_part(schema: dict[str, Any]) -> None:
    """Leave what a side needs to `_of_a_file`."""
    schema.pop("required")


def _of_a_file(schema: dict[str, Any]) -> None:
    """Need nothing of a file that extends another: what it says is not all that holds."""
    whole = {"required": schema.pop("required")}
    needed = [key for key, field in Side.model_fields.items() if field.is_required()]
    whole["properties"] = {side: {"required": needed} for side in ("server", "client")}
    schema |= {"if": {"required": ["extends"]}, "else": whole}


class Side(Spec):
    """A side of the testbed."""

    model_config = ConfigDict(json_schema_extra=_of_a_part)

    address: str = Field(
        pattern=r"^[0-9.]+/[0-9]+$", description="The side's IPv4 address and prefix length."
    )
    cpus: str = Field(
        pattern=CPUS,
        description='Its CPUs, as taskset writes them; or "last" (the last quarter of the '
        'machine\'s, at least one), "first" (the others), "all".',
    )
    cpus_all: str | None = Field(
        None, pattern=CPUS,
        description="The server's CPUs for variants with schedulers=all, where they differ.",
    )  # fmt: skip
    sysctl: dict[str, Level] = Field(description="Kernel settings of the side's namespace.")
    cpu_share: Annotated[float, Field(gt=0, le=1), AS_WRITTEN] | None = Field(
        None,
        description="The share of each of its CPUs that the server may use, by a cgroup's quota; "
        "all of it if absent.",
    )
    cpu_period_us: int | None = Field(
        None, ge=1000, le=1_000_000,
        description="How long the slices are in which that is counted.",
    )  # fmt: skip
    jitter: str | None = Field(
        None,
        description="Words after `netem` for what the server sends (tc-netem(8)); not in force "
        "where the kernel has no netem, as trial.json then says.",
    )

    memory_share: Annotated[float, Field(gt=0, le=1), AS_WRITTEN] | None = Field(
        None,
        description="The share of the machine's memory that the server may use, by a cgroup's "
        "limit where one can be made; beyond it the server is killed, which is a result. "
        "All of it if absent.",
    )

    @model_validator(mode="after")
    def _share_of_a_period(self) -> "Side":
        if self.cpu_share is not None and self.cpu_period_us is None:
            meaning = type(self).model_fields["cpu_period_us"].description
            raise contradiction(("cpu_period_us",), "this key is missing", f"add it: {meaning}")
        return self


class Testbed(NamedSpec):
    """Where client and server run."""

    # pytest would take it for a test.
    __test__ = False

    model_config = ConfigDict(json_schema_extra=_of_a_file)

    extends: str | None = Field(
        None, description="Another testbed, which holds what this file does not say."
    )
    title: str = Field(description="How the paper names it.")
    kind: Literal["netns"] = Field(description="Two network namespaces on this machine.")
    descriptors: int = Field(
        ge=1024, description="Open files asked for on each side; what was got is recorded."
    )
    sample_interval_s: Annotated[float, Field(ge=0.1, le=60), AS_WRITTEN] = Field(
        description="Time between samples of counters."
    )
    accepts: Annotated[Many[str], *DISTINCT] = Field(
        (), description="Rules of the audit that refuse a run elsewhere, and not here."
    )
    server: Side = Field(description="The server's side.")
    client: Side = Field(description="The client's side.")

    @cached_property
    def as_written(self) -> dict[str, Any]:
        """The keys that its file and those that it extends give it."""
        return self.model_dump(exclude_unset=True, exclude={"extends"})
