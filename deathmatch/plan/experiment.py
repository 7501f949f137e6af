"""An experiment: one question, one file `experiments/<name>.toml`."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from deathmatch.load import registry
from deathmatch.load.registry import LoadKey
from deathmatch.plan.spec import (
    AS_WRITTEN,
    FactorLevel,
    FactorName,
    Level,
    Many,
    NamedSpec,
    Setting,
    Spec,
)

# The load generators that an experiment can name.
CLIENTS = registry.names()


LOAD_TYPES = {"text": str, "integer": int, "number": float, "boolean": bool}


def load_keys() -> dict[str, dict[str, LoadKey]]:
    """Return {key: {load generator: what it declares}}, in the order of the load generators."""
    declarations: dict[str, dict[str, LoadKey]] = {}
    for name in registry.names():
        for key, declared in registry.client(name).load.items():
            declarations.setdefault(key, {})[name] = declared
    return declarations


def _load_field(declared: dict[str, LoadKey]) -> Any:
    """Return type and default of a key; its bounds are those of the generator that comes first."""
    first = next(iter(declared.values()))
    meanings: dict[str, list[str]] = {}
    for name, load_key in declared.items():
        meanings.setdefault(load_key.description, []).append(name)
    described = " ".join(f"{text} ({', '.join(names)})." for text, names in meanings.items())
    bounds = {"ge": first.at_least, "gt": first.above, "le": first.at_most}
    bounded = Annotated[
        LOAD_TYPES[first.type],
        Field(**{name: value for name, value in bounds.items() if value is not None}),
    ]
    kind = Annotated[bounded, AS_WRITTEN] if first.type == "number" else bounded
    # Only a key that every load generator needs is needed here; each checks its other keys itself.
    by_all = len(declared) == len(registry.names())
    if by_all and all(load_key.required for load_key in declared.values()):
        return kind, Field(description=described)
    return kind | None, Field(None, description=described)


Load = create_model(
    "Load",
    __base__=Spec,
    __doc__="What the client asks for.",
    **{key: _load_field(declared) for key, declared in load_keys().items()},
)


class Factor(Spec):
    """What is varied."""

    title: str
    """What the factor is, with its unit."""
    levels: Many[FactorLevel] = Field(min_length=1)
    """Every level the experiment knows."""
    default: FactorLevel
    """The level where a dataset names none."""
    client: Literal[True] | None = None
    """The factor is the client's, so every server has it."""
    load: str | None = None
    """The factor is this key of `load`, so every server has it."""
    durations_s: dict[str, int] | None = None
    """Levels at which a rate is offered for a time of their own, in seconds; at the others it is
    the dataset's. Every server has the factor."""
    sysctl: Setting | None = None
    """The factor is this sysctl of the server's namespace, so every server has it."""
    testbeds: dict[str, str] | None = None
    """Levels that run on a testbed of their own, a file in config/testbeds/; the others run on the
    one chosen. Every server has the factor."""

    @cached_property
    def of_harness(self) -> bool:
        """Whether the harness sets it, so that every server has it."""
        own = (self.client, self.load, self.durations_s, self.sysctl, self.testbeds)
        return any(own)


class Churn(Spec):
    """Connections that come and go before the first rate, until they open at a steady pace."""

    connections: int = Field(ge=1, le=10_000)
    """Connections opened in a round."""
    opening: int = Field(ge=1)
    """Connections in the making at once, whatever the load that is measured."""
    interval_s: float = Field(gt=0)
    """Time between two messages of a connection, in seconds."""
    messages: int = Field(ge=1)
    """Messages of a connection, after whose echoes it is closed."""
    round_s: float = Field(gt=0, le=60)
    """How long a round lasts at most, in seconds."""
    rounds: int = Field(ge=1, le=1000)
    """How many rounds there are at most."""
    most_s: float = Field(gt=0, le=3600)
    """No round begins after this time from the first, in seconds."""


class Frame(Spec):
    """A WebSocket frame to send."""

    opcode: Literal["text", "binary", "cont", "ping", "close"]
    """What kind of frame; cont continues a message."""
    payload: str | None = None
    """Its payload, as UTF-8; {a*4000} stands for 4000 times a, {i} for its number."""
    code: int | None = None
    """The code of a close."""
    fin: bool | None = None
    """Whether it ends its message; default: true."""
    masked: bool | None = None
    """Whether it is masked, as a client's must be; default: true."""
    repeat: int | None = Field(None, ge=2)
    """How many times."""


class ConformanceCheck(Spec):
    """What a server must answer before it is timed."""

    name: str
    """What is checked."""
    send: str | None = None
    """The bytes sent, with \\r\\n written out; {a*4000} stands for 4000 times a."""
    status: Many[int] | None = None
    """Acceptable status codes; absent: an error or no answer, which the server survives."""
    frames: Many[Frame] | None = Field(None, min_length=1)
    """The WebSocket frames sent on a connection of its own, at once."""
    echoes: bool | None = None
    """The server must send the same bytes back; each message, a ping as a pong, a close as a close
    and the connection's end."""
    refuses: bool | None = None
    """The server must end the connection and answer nothing."""
    when: dict[str, Level] | None = None
    """Only for variants whose factors have these levels."""
    body: str | None = None
    """The exact body."""
    headers: dict[str, str] | None = None
    """Headers that must be there, each with a regular expression for its value."""
    closes: bool | None = None
    """Whether the server must close the connection after its answer."""
    repeat: int | None = Field(None, ge=2)
    """Send it again after each answer, on the same connection, this many times in all."""
    answers: int | None = Field(None, ge=1)
    """How many such answers must come, for pipelining; default: 1."""

    @model_validator(mode="after")
    def _sends_one_thing(self) -> "ConformanceCheck":
        if (self.send is None) == (self.frames is None):
            raise ValueError("a check has either `send` or `frames`")
        return self

    @cached_property
    def as_written(self) -> dict[str, Any]:
        """The keys that the file gives it."""
        return self.model_dump(exclude_unset=True)


class Experiment(NamedSpec):
    """A question, asked of every server that serves the experiment."""

    title: str
    """The experiment's name in tables and figures."""
    source: str
    """The post it replicates, as a key of paper/source/references.bib."""
    question: str
    """What it asks, in one sentence."""
    client: Literal[CLIENTS] | None = None
    """The load generator, a folder in clients/; absent where `measures` says what is measured
    without load."""
    measures: Literal["storage"] | None = None
    """What is measured in place of answers to a load: "storage", the memory of a program that holds
    messages."""
    load: Load | None = None
    churn: Churn | None = None
    """Connections that come and go before the first rate, after the warm-up, until the rate at
    which they open is steady; default: none."""
    system_calls_rate_rps: int | None = Field(None, ge=1)
    """After the sweep of the first trial of each variant, count the server's system calls while
    this rate is offered; default: do not."""
    factors: dict[FactorName, Factor]
    """What is varied."""
    conformance: Many[ConformanceCheck] | None = Field(None, min_length=1)
    """What a server must answer before it is timed."""

    @model_validator(mode="after")
    def _load_or_none(self) -> "Experiment":
        if (self.client is None) == (self.measures is None):
            raise ValueError('an experiment has a `client`, or `measures = "storage"`')
        for key in ("load", "conformance"):
            if getattr(self, key) is None and self.client is not None:
                raise ValueError(f"an experiment with a client needs `{key}`")
        return self

    @model_validator(mode="after")
    def _factors_fit(self) -> "Experiment":
        known = self.load.model_dump(exclude_unset=True) if self.load else {}
        if registry.FACTOR in self.factors:
            raise ValueError(f"every experiment has the factor {registry.FACTOR}: take it out")
        for name, factor in self.factors.items():
            if factor.load in known:
                raise ValueError(f"`load` has {factor.load!r}, and so has the factor {name!r}")
            if factor.load is not None and factor.load not in Load.model_fields:
                raise ValueError(
                    f"`load` has no key {factor.load!r}, which the factor {name!r} sets"
                )
            odd = sorted(set(factor.durations_s or ()) - set(factor.levels))
            if odd:
                raise ValueError(f"the factor {name!r} has no level {odd[0]!r}")
        return self

    @property
    def load_generators(self) -> tuple[str, ...]:
        """The levels of the factor `load_generator`, the experiment's client first; () if none."""
        return registry.levels(self.client)

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """The keys of a dataset that say what one trial of the experiment goes through."""
        return ("messages",) if self.client is None else ("rates_rps", "duration_s")

    @cached_property
    def load_as_written(self) -> dict[str, Any]:
        """The keys that the file gives `load`; none without load."""
        return self.load.model_dump(exclude_unset=True) if self.load else {}


def expected_body(checks: Iterable[Mapping[str, Any]], load: Mapping[str, Any]) -> str | None:
    """Return the body that the answer to a load's request must have; None if no check says.

    `checks` are a `conformance` table's.
    """
    for check in checks:
        sent = check.get("send", "")
        begin = load.get("request", f"GET {load.get('uri')} ")
        if check.get("echoes") and sent and sent == begin:
            return sent
        if sent.startswith(begin) and 200 in check.get("status", []) and "body" in check:
            return spelled_out(check["body"])
    return None


def spelled_out(text: str) -> str:
    """Return a text with each {a*4000} replaced by 4000 times that character."""
    return re.sub(r"\{(.)\*(\d+)\}", lambda match: match[1] * int(match[2]), text)
