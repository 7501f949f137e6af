"""A testbed: where server and clients run, one file `config/testbeds/<name>.toml`."""

import ipaddress
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from deathmatch.plan.spec import AS_WRITTEN, DISTINCT, Level, Many, NamedSpec, Setting, Spec, partly

FOLDER = ".local/share/deathmatch"
ADDRESS = r"^[0-9.]+/[0-9]+$"
CPUS = r"^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*|first|last|most|all)$"


def _of_a_part(schema: dict[str, Any]) -> None:
    """Require nothing here: `_of_a_file` requires the keys of a side."""
    schema.pop("required", None)


def _of_a_file(schema: dict[str, Any]) -> None:
    partly(schema)
    schema["else"]["properties"] = {"server": {"required": ["address", "cpus", "sysctl"]}}


class Side(Spec):
    """A host of the testbed."""

    model_config = ConfigDict(json_schema_extra=_of_a_part)

    ssh: str | None = Field(None, pattern=r"^[^-\s][^\s]*$")
    """Where `ssh` connects to: a name of ~/.ssh/config, or user@host; default: this machine. Only
    for kind ssh."""
    folder: str = Field(FOLDER, min_length=1, pattern=r"^[^-\x00-\x1f][^\x00-\x1f]*$")
    """The folder there, relative to the home, that the project is copied to and built in. Only for
    kind ssh."""
    python: str = Field("python3", pattern=r"^[^-\x00-\x1f][^\x00-\x1f]*$")
    """The Python there, 3.11 or later, that starts the agent. Only for kind ssh."""
    address: str = Field(pattern=ADDRESS)
    """Its IPv4 address for the load, with the prefix length; for kind ssh, one that it has."""
    cpus: str = Field(pattern=CPUS)
    """Its CPUs, as taskset writes them; or "last" (the last quarter of the machine's, at least
    one), "first" (the others), "most" (the others if they are several, else all), "all"."""
    sysctl: dict[Setting, Level]
    """Kernel settings of the host's namespace; a machine's own are restored after each trial."""
    governor: str | None = Field(None, pattern=r"^[a-z]+$")
    """The frequency governor of its CPUs during a trial, such as performance; it is restored. Only
    for kind ssh, and where the kernel has one."""

    @property
    def host_address(self) -> str:
        """The address without the length of its prefix."""
        return self.address.split("/")[0]


class ServerSide(Side):
    """The server's host."""

    cpus_all: str | None = Field(None, pattern=CPUS)
    """The server's CPUs for variants with schedulers=all; default: `cpus`."""
    memory_share: Annotated[float, Field(gt=0, le=1), AS_WRITTEN] | None = None
    """The share of the machine's memory that the server may use, limited by a cgroup where one can
    be made; a server that exceeds it is killed, which is a result; default: all of it."""


class ClientSide(Side):
    """A client's host."""

    name: str | None = Field(None, pattern=r"^[a-z][a-z0-9-]*$")
    """Its name in records; default: "client", or "client1", "client2" and so on."""
    address: str | None = Field(None, pattern=ADDRESS)
    """Its IPv4 address for the load, with the prefix length; for kind ssh, one that it has."""
    cpus: str | None = Field(None, pattern=CPUS)
    """Its CPUs, written like the server's."""
    sources: Many[Annotated[str, Field(pattern=r"^[0-9.]+(/[0-9]+)?$")]] = ()
    """Addresses or networks that it connects from in turn, for more connections than one address
    has ports; default: its own address. For kind ssh, those that it has."""
    spare_sources: str | None = Field(None, pattern=r"^[0-9.]+/[0-9]+$")
    """A network whose addresses the load generator roundtrip uses, as many as a load needs that has
    more connections than one address has ports; default: none. For kind ssh, those that it has."""
    sysctl: dict[Setting, Level] = Field(default_factory=dict)
    """Kernel settings of the host's namespace; a machine's own are restored after each trial."""

    @model_validator(mode="after")
    def _spare_sources_are_a_network(self) -> "ClientSide":
        if self.spare_sources is not None:
            ipaddress.IPv4Network(self.spare_sources)
        return self


class Testbed(NamedSpec):
    """Where client and server run."""

    # Otherwise pytest takes it for a test.
    __test__ = False

    model_config = ConfigDict(json_schema_extra=_of_a_file)

    extends: str | None = None
    """Another testbed, which holds what this file does not say."""
    title: str
    """How the paper names it."""
    kind: Literal["netns", "ssh"]
    """Network namespaces on this machine, or machines that ssh reaches."""
    descriptors: int = Field(ge=1024)
    """Open files asked for on each side; what was got is recorded."""
    sample_interval_s: Annotated[float, Field(ge=0.1, le=60), AS_WRITTEN]
    """Time between samples of counters."""
    congestion_control: Annotated[
        Many[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]], *DISTINCT
    ] = ()
    """Algorithms of TCP congestion control, best first: each host gets the first that its kernel
    lets one set. Default, also if it refuses all: the kernel's own."""
    accepts: Annotated[Many[str], *DISTINCT] = ()
    """Checks of the audit that refuse a run elsewhere, and not here."""
    server: ServerSide
    client: ClientSide = Field(default_factory=ClientSide)
    """The client's host, or what all clients have in common."""
    clients: Many[ClientSide] = ()
    """Several clients that share the load, each with the keys that differ."""

    @model_validator(mode="after")
    def _whole(self) -> "Testbed":
        for name, side in zip(self.client_names, self.client_sides):
            for key in ("address", "cpus"):
                if getattr(side, key) is None:
                    raise ValueError(f"{name} needs `{key}`")
        sides = [self.server, *self.client_sides]
        for key, values in (
            ("name", ["server", *self.client_names]),
            ("address", [side.host_address for side in sides]),
            ("ssh", [side.ssh for side in sides] if self.kind == "ssh" else []),
        ):
            if len(set(values)) < len(values):
                raise ValueError(f"two hosts have the same `{key}`")
        return self

    @model_validator(mode="after")
    def _keys_of_its_kind(self) -> "Testbed":
        if self.kind == "ssh":
            return self
        for side in (self.server, *self.client_sides):
            for key in ("ssh", "folder", "python", "governor"):
                if getattr(side, key) != Side.model_fields[key].default:
                    raise ValueError(f"`{key}` is only for kind ssh")
        return self

    @cached_property
    def client_sides(self) -> tuple[ClientSide, ...]:
        """The clients, each with the keys that all have in common."""
        common = self.client.model_dump(exclude_unset=True)
        return tuple(
            ClientSide.model_validate(_over(common, client.model_dump(exclude_unset=True)))
            for client in self.clients
        ) or (self.client,)

    @cached_property
    def client_names(self) -> tuple[str, ...]:
        """The names of the clients, in their order."""
        several = len(self.client_sides) > 1
        return tuple(
            side.name or (f"client{place}" if several else "client")
            for place, side in enumerate(self.client_sides, 1)
        )

    @cached_property
    def as_written(self) -> dict[str, Any]:
        """The keys that are set in its file or in one that it extends."""
        return self.model_dump(exclude_unset=True, exclude={"extends"})


def _over(common: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    sysctl = common.get("sysctl", {}) | own.get("sysctl", {})
    return common | own | ({"sysctl": sysctl} if sysctl else {})
