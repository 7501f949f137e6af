"""Where trials run: hosts, the testbed that they form, and the sandbox around it.

In: a testbed's spec. Out: hosts on which programs are started, pinned and ended.
"""
