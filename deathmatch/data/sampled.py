"""A trial's `samples.csv`, read back: what `measure.sampler` saw, or an error with its line."""

from pathlib import Path

import polars as pl

from deathmatch.data import records
from deathmatch.errors import UserError
from deathmatch.measure.sampler import SCHEMA


def read(file: Path) -> pl.DataFrame:
    """Return the samples, with the columns of `sampler.SCHEMA`; no row if there is no file.

    A trial measured before a counter was sampled has null there. Raises UserError for a file that
    is cut, has other columns, or holds what cannot be.
    """
    wanted = pl.DataFrame(schema=SCHEMA)
    if not file.exists():
        return wanted
    content = file.read_bytes()
    if not content.endswith(b"\n"):
        # Its last number may lack digits.
        raise _wrong("the last line has no end", file, content.count(b"\n") + 1)
    header, *lines = content[:-1].split(b"\n")
    names = header.decode(errors="replace").split(",")
    if len(set(names)) < len(names) or not {*names} <= {*SCHEMA} or "time_us" not in names:
        raise _wrong("its first line does not name the columns of samples", file, 1)
    for number, line in enumerate(lines, 2):
        if line.count(b",") != len(names) - 1:
            raise _wrong(f"not {len(names)} values", file, number)
    try:
        found = pl.read_csv(content, schema=dict.fromkeys(names, pl.String), quote_char=None)
        found = found.cast({name: SCHEMA[name] for name in names})
    except pl.exceptions.PolarsError as error:
        raise _wrong(str(error).splitlines()[0][:200], file) from None
    # No counter is below zero.
    for name in names:
        known = found[name].drop_nulls()
        if not (known.is_finite() & (known >= 0)).all():
            raise _wrong(f"a number of {name} cannot be", file)
    if found["time_us"].has_nulls() or not found["time_us"].is_sorted():
        raise _wrong("the samples are not in the order of their time", file)
    return pl.concat([wanted, found], how="diagonal")


def _wrong(what: str, file: Path, line: int = 0) -> UserError:
    where = f"{file}, line {line}" if line else str(file)
    return UserError(what, where, records.remedy(file))
