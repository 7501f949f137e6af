"""What `[load]` of an experiment may say: the keys that the `client.toml` of clients declare."""

from typing import Annotated, Any

from pydantic import Field, create_model

from deathmatch.load import registry
from deathmatch.load.registry import LoadKey
from deathmatch.plan.spec import AS_WRITTEN, Spec

TYPES = {"text": str, "integer": int, "number": float, "boolean": bool}


def keys() -> dict[str, dict[str, LoadKey]]:
    """Return {key: {load generator: what it declares}}, in the order of the load generators."""
    declarations: dict[str, dict[str, LoadKey]] = {}
    for name in registry.names():
        for key, declared in registry.client(name).load.items():
            declarations.setdefault(key, {})[name] = declared
    return declarations


def _field(declared: dict[str, LoadKey]) -> Any:
    """Return type and default of a key; its bounds are those of the generator that comes first."""
    first = next(iter(declared.values()))
    meanings: dict[str, list[str]] = {}
    for name, load_key in declared.items():
        meanings.setdefault(load_key.description, []).append(name)
    described = " ".join(f"{text} ({', '.join(names)})." for text, names in meanings.items())
    bounds = {"ge": first.at_least, "gt": first.above, "le": first.at_most}
    bounded = Annotated[
        TYPES[first.type],
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
    **{key: _field(declared) for key, declared in keys().items()},
)
