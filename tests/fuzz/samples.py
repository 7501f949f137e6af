"""Small valid reports of the load generators, of which there is no trial among the tests' data."""

import json

import polars as pl

from deathmatch.load import roundtrip, wsload_records
from deathmatch.load.generator import FIRST_WRONG

_COUNTS = dict.fromkeys(roundtrip._HEAD, 0) | {
    "roundtrip": roundtrip.VERSION, "loop": "open", "connections": 8, "offered_rate_rps": "200.000",
    "offered_duration_us": 2_000_000, "test_duration_us": 1_995_389, "request_bytes": 35,
    "reply_bytes": 77, "reply_begins": "HTTP/1.1.200", "requests": 5, "requests_offered_window": 5,
    "replies": 4, "replies_offered_window": 4, "reply_rate_offered_window_rps": "2.000",
    "connects": 8, "errors_total": 1, "errors_other": 1, "client_cpu_user_us": 18209,
    FIRST_WRONG: "",
}  # fmt: skip
_HEAD = "".join(f"{name}: {value}\n" for name, value in _COUNTS.items())
_SERVICE = "service_time 156.672 157.696 1\nservice_time 163.840 164.864 3\n"
ROUNDTRIP = [
    f"{_HEAD}{_SERVICE}latency 160.000 161.024 4\nsend_lag 0.000 1.000 4\nend\n".encode(),
    f"{_HEAD.replace('loop: open', 'loop: closed')}{_SERVICE}end\n".encode(),
]

_TIME = {"p99_us": 3, "max_us": 9}
SUMMARY = json.dumps(
    {
        "connections": {"intended_count": 4, "opened_count": 4, "upgraded_count": 3,
                        "outcomes_count": {"completed": 3, "refused": 1},
                        "most_opening_count": 2, "first_started_us": 1, "last_upgraded_us": 9},
        "messages": {"intended_count": 6, "sent_count": 5, "echoed_count": 4, "lost_count": 1,
                     "unsent_count": 1, "mismatched_count": 0, "first_mismatched": None},
        "client": {"lag": _TIME, "cpu_us": 5, "resident_peak_bytes": 7, "loop_busy_share": 0.5,
                   "step_us": 0, "hold_us": None, "limited_by": ["it sent late"]},
    },
    indent=2,
).encode()  # fmt: skip
TIMES = pl.DataFrame(
    [
        ("handshake_time", 0, 300, 3), ("handshake_time", 0, None, 1),
        ("latency", 0, 100, 2), ("latency", 1, 120, 2), ("latency", 1, None, 2),
        ("service_time", 0, 90, 4), ("service_time", 1, None, 1),
        ("connection_time", 0, 30, 3), ("connection_time", 0, None, 1),
    ],
    wsload_records.TIMES_SCHEMA, orient="row",
)  # fmt: skip
