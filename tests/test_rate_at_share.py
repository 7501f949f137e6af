"""The rate that stands for a share of a capacity, where some trials only say that there is more."""

import pytest

from deathmatch.analysis import selecting

NODE = frozenset({("server", "node")})


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.667, 28_000), (0.8, 40_000), (0.683, None), (0.4, None)],
    ids=["the lower rate", "the higher rate", "either of them", "no rate near"],
)
def test_a_trial_without_a_search_leaves_open_only_what_it_could_change(share, expected):
    """Two of nine trials have none: the median lies between 48,444 and 49,928 requests a second.

    28,000 and 40,000 were offered, whose boundary is 33,466.
    """
    assert selecting.rate_at_share("dynamic-times", "dynamic", NODE, share) == expected
