"""The agent: what runs on a host for the controller, `python -m deathmatch.agent`.

In: requests, one JSON object a line, on standard input. Out: answers and events on standard output.
It imports the standard library only: a host needs no other part of the study.

There are two processes. The `keeper` holds the host's lock, restores settings that a killed
predecessor changed, makes the pid namespace, and restores settings once that has ended. The
`session` is the first process of the namespace, so that all its processes end with it: when its
input ends, when nothing came for `silence_s`, or when it is killed.

A request is {"id", "verb", ...}, its answer {"id", "ok"} or {"id", "error"}; without "id" there is
no answer. `session` has the verbs. The steps of a trial use these:

- a server's start and stop: `start` with `output`, `cpus` and `environment`, the event `ended`,
  `signal`, `processes`, `kill`; a throttle: `run` for the cgroup, then words before the command;
  its output, of limited size: `fetch`, from the controller's last offset
- readiness and the requests of the conformance check: `connect`, `transmit`, `receive`, `hang_up`
  on a client's host, so that they cross the link under test
- the backlog in force: `listeners`; idle connections: `count`; the process that holds them: `start`
  with `talk`
- counters: `sample`, all of a host's at the same time; single ones: `counters`, `usage` and
  `pss_bytes`
- system calls: `start` of strace, `threads`, `read` of /proc
- sysctls, frequency governors, IRQ affinities: `settings`, and `set`, which records for the keeper
- a load generator: `start` with `at_ns`, the local instant agreed by means of `clock`; the event
  `began` reports the lateness; its report: `fetch`, or `files` and `fetch` if there are several
"""
