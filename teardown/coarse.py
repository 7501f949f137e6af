"""Keep wsload's histograms at wsload_records.DIGITS: python teardown/coarse.py ARCHIVE…"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, ".")
import polars as pl

from deathmatch.data import archive
from deathmatch.load import histogram, wsload, wsload_records

for name in sys.argv[1:]:
    file = Path(name)
    before = file.stat().st_size
    with tempfile.TemporaryDirectory() as there:
        archive.unpack(file, Path(there))
        for log in sorted(Path(there).rglob("wsload-*.parquet")):
            if log.name.endswith(wsload.SHARES):
                continue
            times = wsload_records.of_steps(pl.read_parquet(log))
            digits = wsload_records.DIGITS
            rounded = times.with_columns(time_us=histogram.rounded_us(pl.col("time_us"), digits))
            key = ["quantity", "second", "time_us"]
            summed = rounded.group_by(key, maintain_order=True).agg(pl.col("count").sum())
            kept = summed.sort(key, nulls_last=True).cast(wsload_records.TIMES_SCHEMA)
            wsload_records.steps(kept).write_parquet(log, compression="zstd", compression_level=19)
        trials = [path.parent for path in Path(there).rglob("trial.json")]
        archive.write(file, Path(there), trials)
    print(file, before, file.stat().st_size)
