"""When claims on a dataset of adaptive rounds are looked at; without a library, for the help."""

LOOKS = (3, 5, 7, 9, 12, 15)
"""After how many trials a claim is looked at; `analysis.sequential` has their levels."""
