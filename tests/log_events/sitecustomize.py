"""Counts a server's log events: its Python imports this where PYTHONPATH names this folder.

For each call that makes an event or formats a line of an access log, whether or not it is shown,
one line with that function's name is added to the file that LOG_EVENTS names. For Python 2.7 too.
"""

import os
import sys
import threading

# By the end of the file's path: what makes events, or the lines of an access log.
WATCHED = {
    ("logging/__init__.py", "makeRecord"),
    ("twisted/logger/_logger.py", "emit"),
    ("twisted/web/http.py", "combinedLogFormatter"),
    ("twisted/web/http.py", "proxiedLogFormatter"),
    ("cherrypy/_cplogging.py", "access"),
    ("gevent/pywsgi.py", "format_request"),
    ("http/server.py", "log_message"),
    ("BaseHTTPServer.py", "log_message"),
}
FUNCTIONS = {function for _, function in WATCHED}
EVENTS = os.open(os.environ["LOG_EVENTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)


def watch(frame, event, _):
    """Tell of each call of a function that is watched, as a profiler is told of every call."""
    code = frame.f_code
    if event == "call" and code.co_name in FUNCTIONS:
        for file, function in WATCHED:
            if code.co_name == function and code.co_filename.endswith("/" + file):
                os.write(EVENTS, " ".join((file, function, "\n")).encode())


threading.setprofile(watch)
sys.setprofile(watch)
