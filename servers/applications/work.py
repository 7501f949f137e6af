"""Tornado with the echo of servers/tornado, each answer after WORK_S of CPU time.

work.py ADDRESS PORT BACKLOG
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tornado"))

import serve

WORK_S = 0.01


class Application(serve.Echo):
    def get(self):
        end_s = time.thread_time() + WORK_S
        while time.thread_time() < end_s:
            pass
        super().get()


serve.Echo = Application
serve.main("dynamic", *sys.argv[1:], "1", "epoll")
