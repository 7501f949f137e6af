"""Every server that this machine can run answers every experiment it serves, in every variant.

Not in the usual run, since building all of them takes minutes: ./shell pytest tests/conformance
"""

import pytest
from test_conformance import LOAD_EXPERIMENTS, assert_conforms, check_variants

from deathmatch.plan import matrix

SERVERS = sorted({server.name for each in LOAD_EXPERIMENTS for server in matrix.serving(each)})


@pytest.mark.parametrize("server", SERVERS)
def test_every_variant_conforms(shared_tree, server):
    for one in check_variants(shared_tree, server, everywhere=True):
        assert_conforms(one)
