"""The agent: what runs on a host for the controller, `python -m deathmatch.agent`.

In: requests, one JSON object a line, on standard input. Out: answers and events on standard output.
It imports the standard library only: a host needs no other part of the study.

Two processes. The `keeper` holds the host's lock, restores what a killed predecessor changed, and
makes the pid namespace; when that has ended, however it ended, it restores the settings that were
changed. The `session` is the first process of the namespace, so that everything ends with it: when
its input ends, when nothing came for `silence_s`, or when it is killed.

A request is {"id", "verb", ...}, its answer {"id", "ok"} or {"id", "error"}; "id" may be left out
where no answer is wanted. `session` has the verbs. How the steps of a trial are said with them:

- a server's start and stop: `start` with `output`, `cpus` and `environment`, the event `ended`,
  `signal`, `processes`, `kill`; a throttle is `run` for the cgroup, then a prefix of the words;
  what it printed, which is kept within bounds: `fetch`, from the controller's last offset on
- readiness and the requests of the conformance check: `connect`, `transmit`, `receive`, `hang_up`,
  asked of a client, so that they cross the link under test
- the backlog in force: `listeners`; idle connections: `count`; their holder: `start` with
  `talk`
- counters: `sample`, all of a host's at a time; single ones by `counters`, `usage` and
  `pss_bytes`
- system calls: `start` of strace, `threads`, `read` of /proc
- sysctls, frequency governors, IRQ affinities: `settings` and `set`, which records for the keeper
- a load generator: `start` with `at_ns`, the local instant agreed on by way of `clock`; the event
  `began` reports how late that was; its report by `fetch`, or `files` and `fetch` if there are many
"""
