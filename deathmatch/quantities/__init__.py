"""Every quantity that the study reports, defined once: its name, unit, title and estimators.

In: the points of a trial. Out: one number for the trial. `definitions` has the quantities by name,
`quantity` what a definition consists of, which answers are good and how many samples carry a
quantile. Which points count is decided by `deathmatch.data.laws` and `analysis.by_trial`.
"""
