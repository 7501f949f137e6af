"""A notebook's kernel as a fork of this process, which has imported all that cells import.

Starting Python and importing takes a kernel two seconds and more, a fork some milliseconds. Jupyter
starts kernels through a provisioner; this one gives the fork its connection file and waits for its
end. The fork waits for one kernel, and the operating system kills it if this process ends.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from ipykernel.kernelapp import IPKernelApp

from deathmatch.hosts import forked

# A dependency of nbclient, which comes with it: it is in no list of our own.
_provisioning = import_module("jupyter_client.provisioning")

NAME = "deathmatch-forked"


class ForkedKernel:
    """A fork that becomes a kernel once it gets the address to listen on.

    It has the methods of `subprocess.Popen` that Jupyter's local provisioner calls.
    """

    stdin = stdout = stderr = None

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self._status: int | None = None

        def become() -> None:
            os.close(self._writing)
            # An interrupt of the terminal is for the process that runs the notebook.
            os.setsid()
            with open(reading) as pipe:
                order = pipe.read()
            # Empty where the notebook had no cell to run.
            if order:
                _serve(**json.loads(order))

        self.pid = forked.start(become)
        os.close(reading)

    def begin(self, arguments: list[str], folder: str, environment: Mapping[str, str]) -> None:
        """Have the fork serve as a kernel with these words after its program's name."""
        order = {"arguments": arguments, "folder": folder, "environment": dict(environment)}
        with open(self._writing, "w") as pipe:
            json.dump(order, pipe)

    def poll(self) -> int | None:
        """Return its exit status, -N after signal N; None while it runs."""
        if self._status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if ended else None
        return self._status

    def wait(self) -> int:
        """Wait for its end; return its exit status, -N after signal N."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def send_signal(self, number: int) -> None:
        """Send it a signal; nothing if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it; nothing if it has ended."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end; nothing if it has."""
        self.send_signal(signal.SIGTERM)


class ForkedProvisioner(_provisioning.LocalProvisioner):
    """The provisioner that gives Jupyter the process's `ForkedKernel`."""

    kernel: ForkedKernel

    async def launch_kernel(self, cmd: list[str], **options: Any) -> dict[str, Any]:
        """Start the kernel with the words of `cmd` that follow its program."""
        self.process = self.kernel
        self.pid, self.pgid = self.process.pid, self.process.pid
        self.cwd = options.get("cwd") or os.getcwd()
        self.process.begin(cmd[cmd.index("-f") :], self.cwd, options["env"])
        return self.connection_info


def prepare() -> ForkedKernel | None:
    """Return a kernel for Jupyter to start as NAME; None where this process may not fork one.

    A fork has no thread but the one that called, so none may hold what the others would wait for.
    And it orders sets as this process does, so that must not differ from one run to the next.
    """
    if sys.flags.hash_randomization or threading.active_count() > 1 or _polars_has_begun():
        return None
    kernel = ForkedKernel()
    provisioner = f"{__name__}:{ForkedProvisioner.__name__}"
    ForkedProvisioner.kernel = kernel
    _provisioning.KernelProvisionerFactory.provisioners[NAME] = EntryPoint(
        NAME, provisioner, _provisioning.KernelProvisionerFactory.GROUP_NAME
    )
    return kernel


def _polars_has_begun() -> bool:
    names = (file.read_text() for file in Path("/proc/self/task").glob("*/comm"))
    return any(name.startswith("polars") for name in names)


def _serve(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    IPKernelApp.launch_instance(arguments)
