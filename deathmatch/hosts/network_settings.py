"""The kernel's network settings of a host: all readable ones of net.ipv4.tcp_* and net.core."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from deathmatch.errors import UserError
from deathmatch.hosts.host import Host

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
# Folders are skipped, as they are those of interfaces, and keys, which are random and secret.
_READ = """
cd /proc/sys/net
grep --no-messages --with-filename --directories=skip --exclude='*_key' '' ipv4/tcp_* core/* || :
"""


def read(host: Host) -> dict[str, str]:
    """Return the settings in force, by name; costs two short processes on the host."""
    lines = host.run("sh", "-c", _READ).splitlines()
    pairs = (line.partition(":") for line in lines)
    return {f"net.{file.replace('/', '.')}": " ".join(value.split()) for file, _, value in pairs}


def record(settings: Mapping[str, Mapping[str, str]]) -> dict[str, dict]:
    """Return the settings of all hosts for trial.json: the first host's, then differences from it.

    Each host has the hash of its settings. A setting that only the first host has is None.
    """
    first, *_ = settings.values()
    whole = next(iter(settings))
    return {
        name: {
            "sha256": digest(own),
            **({"settings": dict(own)} if name == whole else {"differs": _differing(first, own)}),
        }
        for name, own in settings.items()
    }


def restored(recorded: Mapping[str, Mapping]) -> dict[str, dict[str, str]]:
    """Return the settings of all hosts, given the result of `record`."""
    first = next((host["settings"] for host in recorded.values() if "settings" in host), {})
    whole = {
        name: dict(host["settings"]) if "settings" in host else first | host["differs"]
        for name, host in recorded.items()
    }
    return {
        name: {key: value for key, value in own.items() if value is not None}
        for name, own in whole.items()
    }


def digest(settings: Mapping[str, str]) -> str:
    """Return the SHA-256 of settings; their order does not matter."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _differing(first: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str | None]:
    return {
        key: own.get(key) for key in sorted({*first, *own}) if own.get(key) != first.get(key)
    }  # fmt: skip


def set_congestion_control(host: Host, names: Sequence[str]) -> str:
    """Set the first of these algorithms of TCP congestion control that the kernel accepts.

    Return the one in force. In a namespace the kernel accepts only those that it allows to all
    users (net.ipv4.tcp_allowed_congestion_control).
    """
    for name in names:
        try:
            host.set_sysctls({CONGESTION_CONTROL: name})
            break
        except UserError:
            continue
    return host.sysctls([CONGESTION_CONTROL])[CONGESTION_CONTROL]
