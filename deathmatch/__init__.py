"""Deathmatch: five web-server benchmarks, replicated.

The package is the study's machinery. `README.md` in this folder says what flows between its parts.
"""

import sys

# jsonschema tries to load checkers of formats that no schema here uses; this one takes more than
# a second of every process.
sys.modules.setdefault("rfc3987_syntax", None)
