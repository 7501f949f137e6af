"""The search for a server's capacity: which rate the next probe offers. Pure.

In: the results of the probes so far. Out: the next rate, or what the search came to. `data.probes`
reads a probe's result in its reports, `measure.search_run` offers the load.
"""
