"""How a trial is measured: server processes, conformance, load, probes of the kernel.

In: a trial and its testbed. Out: its folder in data/, with raw logs and trial.json.
"""
