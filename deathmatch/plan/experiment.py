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

LOAD_TYPES = {"text": str, "integer": int, "number": float, "boolean": bool}


def load_keys() -> dict[str, dict[str, LoadKey]]:
    """Return {key: {load generator: what it declares}}, in the order of the load generators."""
    declarations: dict[str, dict[str, LoadKey]] = {}
    for name in registry.names():
        for key, declared in registry.client(name).load.items():
            declarations.setdefault(key, {})[name] = declared
    return declarations


def _load_field(declared: dict[str, LoadKey]) -> Any:
    """Return a key's type and default; its bounds are those of the first load generator."""
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
    # A key is required here if every load generator requires it; each checks its other keys.
    by_all = len(declared) == len(registry.names())
    if by_all and all(load_key.required for load_key in declared.values()):
        return kind, Field(description=described)
    return kind | None, Field(None, description=described)


Load = create_model(
    "Load",
    __base__=Spec,
    __doc__="The load that the client offers.",
    **{key: _load_field(declared) for key, declared in load_keys().items()},
)


class Factor(Spec):
    """A setting that is varied."""

    title: str
    """What the factor is, with its unit."""
    levels: Many[FactorLevel] = Field(min_length=1)
    """Every level that the experiment knows."""
    default: FactorLevel
    """The level where a dataset names none."""
    client: Literal[True] | None = None
    """The factor is the client's, so every server has it."""
    load: str | None = None
    """The factor is this key of `load`, so every server has it."""
    durations_s: dict[str, int] | None = None
    """How long each rate is offered at a level, in seconds; default: the dataset's time. Every
    server has the factor."""
    sysctl: Setting | None = None
    """The factor is this sysctl of the server's namespace, so every server has it."""

    @cached_property
    def of_harness(self) -> bool:
        """Whether the harness sets it, so that every server has it."""
        return any((self.client, self.load, self.durations_s, self.sysctl))


class Churn(Spec):
    """Connections that come and go before the first rate, until they open at a steady pace."""

    connections: int = Field(ge=1, le=10_000)
    """Connections opened in a round."""
    opening: int = Field(ge=1)
    """Connections being opened at once, whatever the measured load has."""
    interval_s: float = Field(gt=0)
    """Time between two messages of a connection, in seconds."""
    messages: int = Field(ge=1)
    """Messages on a connection; it is closed after their echoes."""
    round_s: float = Field(gt=0, le=60)
    """The longest time of a round, in seconds."""
    rounds: int = Field(ge=1, le=1000)
    """The highest number of rounds."""
    most_s: float = Field(gt=0, le=3600)
    """The time after which no round begins, in seconds since the first one's start."""


class Frame(Spec):
    """A WebSocket frame to send."""

    opcode: Literal["text", "binary", "cont", "ping", "close"]
    """The kind of frame; cont continues a message."""
    payload: str | None = None
    """Its payload, as UTF-8; {a*4000} stands for 4000 times a, {i} for the frame's number."""
    code: int | None = None
    """The status code of a close frame."""
    fin: bool | None = None
    """Whether it ends its message; default: true."""
    masked: bool | None = None
    """Whether it is masked, as a client's frames must be; default: true."""
    repeat: int | None = Field(None, ge=2)
    """How many times it is sent; default: once."""


class ConformanceCheck(Spec):
    """A check of a server's answers, before it is timed."""

    name: str
    """What is checked."""
    send: str | None = None
    """The bytes sent, with \\r\\n written out; {a*4000} stands for 4000 times a."""
    status: Many[int] | None = None
    """Acceptable status codes; default: an error or no answer, as long as the server survives."""
    frames: Many[Frame] | None = Field(None, min_length=1)
    """The WebSocket frames sent at once, on a new connection."""
    echoes: bool | None = None
    """The server must send the same bytes back: each message; a pong for a ping; for a close, a
    close and the end of the connection."""
    refuses: bool | None = None
    """The server must end the connection and answer nothing."""
    when: dict[str, Level] | None = None
    """Only for variants with these levels of factors."""
    body: str | None = None
    """The exact body."""
    headers: dict[str, str] | None = None
    """Required headers, each with a regular expression for its value."""
    closes: bool | None = None
    """Whether the server must close the connection after its answer."""
    repeat: int | None = Field(None, ge=2)
    """How many times it is sent on one connection, each time after the answer; default: once."""
    answers: int | None = Field(None, ge=1)
    """The number of such answers that must come, for pipelining; default: 1."""

    @model_validator(mode="after")
    def _sends_one_thing(self) -> "ConformanceCheck":
        if (self.send is None) == (self.frames is None):
            raise ValueError("a check has either `send` or `frames`")
        return self

    @cached_property
    def as_written(self) -> dict[str, Any]:
        """The keys that are set in the file."""
        return self.model_dump(exclude_unset=True)


class Experiment(NamedSpec):
    """A question, asked of every server that serves the experiment."""

    title: str
    """The experiment's name in tables and figures."""
    source: str
    """The post it replicates, as a key of paper/source/references.bib."""
    question: str
    """The question, in one sentence."""
    client: Literal[registry.CLIENTS] | None = None
    """The load generator, a folder in clients/; an experiment without one has `measures`."""
    measures: Literal["storage"] | None = None
    """What is measured without load: "storage", the memory of a program that holds messages."""
    load: Load | None = None
    churn: Churn | None = None
    """Connections that come and go before the first rate, after the warm-up, until the rate at
    which they open is steady; default: none."""
    system_calls_rate_rps: int | None = Field(None, ge=1)
    """The rate at which the server's system calls are counted after the sweep of the first trial of
    each variant; default: they are not counted."""
    factors: dict[FactorName, Factor]
    """The settings that are varied."""
    conformance: Many[ConformanceCheck] | None = Field(None, min_length=1)
    """The checks of a server's answers, before it is timed."""

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
        """The keys of a dataset with the steps of one trial of the experiment."""
        return ("messages",) if self.client is None else ("rates_rps", "duration_s")

    @cached_property
    def load_as_written(self) -> dict[str, Any]:
        """The keys of `load` that are set in the file; none without load."""
        return self.load.model_dump(exclude_unset=True) if self.load else {}


def expected_body(checks: Iterable[Mapping[str, Any]], load: Mapping[str, Any]) -> str | None:
    """Return the body that the answer to a load's request must have; None if no check has one.

    `checks` are those of `conformance`.
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
