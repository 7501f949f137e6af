"""The base of all specs: frozen, strictly checked, with no other keys than their own."""

from collections.abc import Hashable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, WrapValidator

Item = TypeVar("Item", bound=Hashable)

# A TOML array, kept as a tuple.
Many = Annotated[tuple[Item, ...], Field(strict=False)]

# An integer that a table holds.
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Level = str | Whole

# A level of a factor: it becomes part of a folder's name and a word of commands.
FactorLevel = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] | Whole
FactorName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_]*$",
        description="A factor's name has letters, digits and underscores; it begins with a letter.",
    ),
]
# The name becomes a path below /proc/sys.
Setting = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$",
        description="A kernel setting's name, with dots: net.core.somaxconn.",
    ),
]


def _as_written(value: Any, check) -> int | float:
    check(value)
    return value


# A number that keeps its type: `5` in a file is `5` in a trial's record, not `5.0`. Bounds come
# before it: `Annotated[float, Field(gt=0), AS_WRITTEN]`.
AS_WRITTEN = WrapValidator(_as_written)


def _distinct(items: tuple) -> tuple:
    twice = next((item for place, item in enumerate(items) if item in items[:place]), None)
    if twice is not None:
        raise ValueError(f"{twice!r} is listed twice")
    return items


# For a TOML array without duplicates: `Annotated[Many[str], *DISTINCT]`.
DISTINCT = (AfterValidator(_distinct), Field(json_schema_extra={"uniqueItems": True}))


def partly(schema: dict[str, Any]) -> None:
    """Require keys only of a file that extends no other: one that does may inherit them."""
    schema |= {"if": {"required": ["extends"]}, "else": {"required": schema.pop("required")}}


class Spec(BaseModel):
    """A table of a settings file. bench/docs.py describes each key by the string below it."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class NamedSpec(Spec):
    """A whole file; its name is that of the file or of its folder."""

    _name: str = PrivateAttr("")

    def model_post_init(self, context: dict | None) -> None:
        """Take the name from the validation's context, as the file itself does not hold it."""
        self._name = (context or {}).get("name", "")

    @property
    def name(self) -> str:
        """The name by which other files refer to it."""
        # A matrix asks often; pydantic's own access to a private attribute takes ten times as long.
        return self.__pydantic_private__["_name"]

    def __hash__(self) -> int:
        """Hash the name: the tables of a spec cannot be hashed."""
        return hash(self._name)
