"""Analysis of the tables: statistics, views, published values, claims and their verdicts.

In: tidy tables and data/published/. Out: frames and phrases for the notebooks.
"""
