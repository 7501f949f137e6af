"""What all specs share: they are frozen, checked strictly, and know no key but their own."""

from collections.abc import Hashable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, WrapValidator

Item = TypeVar("Item", bound=Hashable)

# A TOML array, kept as a tuple.
Many = Annotated[tuple[Item, ...], Field(strict=False)]

Level = str | int

# A level of a factor: it becomes part of a folder's name and a word of commands.
FactorLevel = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] | int
FactorName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_]*$",
        description="A factor's name has letters, digits and underscores, a letter first.",
    ),
]
# A kernel setting by its name, which becomes a path below /proc/sys.
Setting = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$",
        description="A kernel setting by its name, with points: net.core.somaxconn.",
    ),
]


def _as_written(value: Any, check) -> int | float:
    check(value)
    return value


# A real number, or a whole one that stays whole: `5` in a file is `5` in a trial's record. Bounds
# stand before it: `Annotated[float, Field(gt=0), AS_WRITTEN]`.
AS_WRITTEN = WrapValidator(_as_written)


def _distinct(items: tuple) -> tuple:
    twice = next((item for place, item in enumerate(items) if item in items[:place]), None)
    if twice is not None:
        raise ValueError(f"{twice!r} is there twice")
    return items


# For a TOML array that names nothing twice: `Annotated[Many[str], *DISTINCT]`.
DISTINCT = (AfterValidator(_distinct), Field(json_schema_extra={"uniqueItems": True}))


def partly(schema: dict[str, Any]) -> None:
    """Need nothing of a file that extends another: what it says is not all that holds."""
    schema |= {"if": {"required": ["extends"]}, "else": {"required": schema.pop("required")}}


class Spec(BaseModel):
    """A part of a file of settings. bench/docs.py reads what stands below its keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class NamedSpec(Spec):
    """A whole file, called by the name of the file or of its folder."""

    _name: str = PrivateAttr("")

    def model_post_init(self, context: dict | None) -> None:
        """Take the name from the validation's context: the file itself does not hold it."""
        self._name = (context or {}).get("name", "")

    @property
    def name(self) -> str:
        """The name by which other files refer to it."""
        # pydantic's own way to a private attribute takes ten times as long: a matrix asks often.
        return self.__pydantic_private__["_name"]

    def __hash__(self) -> int:
        """Hash the name: the tables of a spec cannot be hashed."""
        return hash(self._name)
