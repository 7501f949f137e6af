"""Names of the agent that other packages use: what the kernel counts, and states of sockets."""

from deathmatch.agent.diag import ESTABLISHED, SYN_RECEIVED
from deathmatch.agent.kernel import MODES, USED, raise_descriptors
from deathmatch.agent.output import LIMIT_BYTES

__all__ = ["ESTABLISHED", "LIMIT_BYTES", "MODES", "SYN_RECEIVED", "USED", "raise_descriptors"]
