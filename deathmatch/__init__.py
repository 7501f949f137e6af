"""Deathmatch: five web-server benchmarks, replicated.

The package is the study's machinery, in the order data flows through it:
`config` and `matrix` say what is measured, `sandbox` and `testbed` where,
`server`, `conformance`, `httperf` and `sampler` how, `trial` runs one trial,
`tidy` turns raw logs into Parquet, `stats` summarises, and `notebook`,
`display`, `theme` and `paper` publish.
"""

import sys

# jsonschema tries to load checkers of formats that no schema here uses; this one takes more than
# a second of every process.
sys.modules.setdefault("rfc3987_syntax", None)
