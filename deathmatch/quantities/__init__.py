"""Every quantity that the study reports, defined once: its name, unit, title and estimators.

In: the points of a trial. Out: one number for the trial. `definitions` has the quantities by name,
`quantity` the parts of a definition, the rules for good answers and the samples that a quantile
needs. `deathmatch.data.laws` and `analysis.by_trial` decide which points count.
"""
