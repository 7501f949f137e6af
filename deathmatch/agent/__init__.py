"""The agent: what runs on a host for the controller, `python -m deathmatch.agent`.

In: requests, one JSON object a line, on standard input. Out: answers and events on standard output.
It imports the standard library only: a host needs no other part of the study.

There are two processes. The `keeper` holds the host's lock, restores settings that a killed
predecessor changed, makes the pid namespace, and restores settings once that has ended. The
`session` is the first process of the namespace, so that all its processes end with it: when its
input ends, when nothing came for `silence_s`, or when it is killed.

A request is {"id", "verb", ...}, its answer {"id", "ok"} or {"id", "error"}; without "id" there is
no answer. `session` has the verbs.
"""
