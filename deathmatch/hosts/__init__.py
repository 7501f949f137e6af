"""Where trials run: hosts, the testbed they form, the sandbox around it, and their toolchain.

In: a testbed's spec. Out: places where programs run, are pinned, throttled and ended.
"""
