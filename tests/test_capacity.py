"""How many machines a million connections ask for: formulas, the simulation, measured points."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deathmatch.analysis import capacity, capacity_model, connection_memory, million, views
from deathmatch.analysis.capacity import Cost, Machine, Target

GIGABIT = 1e9


def machine(**keys: float) -> Machine:
    known = {"cpus": 4, "memory_bytes": 1e9, "link_bits_per_s": GIGABIT, "descriptors": 10**6}
    return Machine(**known | keys)


def test_a_message_on_the_wire_has_all_its_headers():
    # 14 + 4 + 8 + 12 of Ethernet, 20 of IP, 32 of TCP, 2 of WebSocket, 4 of its mask, 33.
    assert capacity.frame_bytes(33, masked=True) == 129
    assert capacity.frame_bytes(33, masked=False) == 125
    assert capacity.frame_bytes(126, masked=False) == 90 + 4 + 126
    assert capacity.frame_bytes(70_000, masked=True) == 90 + 10 + 4 + 70_000
    assert capacity.ack_bytes() == 90


def test_a_client_acknowledges_apart_where_its_next_message_is_late():
    seldom, often = Target(1000, 1000, 33), Target(1000, 100_000, 33)
    assert capacity.own_acks(seldom) and not capacity.own_acks(often)
    assert capacity.bits(seldom)["link to the server"] == 8 * (129 + 90)
    assert capacity.bits(often)["link to the server"] == 8 * 129


def test_machines_are_asked_for_by_the_scarcest_resource():
    wanted, cost = Target(1_000_000, 10_000_000, 33), Cost(30, 4000, 1000)
    found = capacity.machines(wanted, cost, machine())
    assert found == {
        "CPU": 75, "memory": 5, "ports": 16, "descriptors": 1, "link to the server": 18,
        "link from the server": 10,
    }  # fmt: skip
    assert capacity.first(found) == "CPU"
    assert "ports" not in capacity.machines(wanted, cost, machine(), server=True)
    rich = machine(cpus=1000, addresses=16)
    assert capacity.first(capacity.machines(wanted, cost, rich)) == "link to the server"


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    server_us=st.floats(1, 100), client_us=st.floats(1, 100), cpus=st.integers(1, 8),
    clients=st.integers(1, 4), link=st.floats(1e7, 1e10), load=st.floats(0.2, 3),
)  # fmt: skip
def test_the_simulation_bears_what_the_formulas_say(
    server_us, client_us, cpus, clients, link, load
):
    server, client = Cost(server_us, 0, 0), Cost(client_us, 0, 0)
    serving, asking = machine(cpus=cpus, link_bits_per_s=link), machine(cpus=2)
    sides = [(server, serving, True, 1), (client, asking, False, clients)]
    bears = capacity.rate_per_s(Target(10**6, 1.0, 33), sides)
    offered = Target(10**6, load * bears, 33)
    found = capacity_model.exchanged(
        offered, (server, serving), (client, asking), clients, 4000 / offered.rate_per_s
    )
    # Half of the messages count: random arrivals make them differ by their root, and clients more.
    assert found.rate_per_s == pytest.approx(min(1.0, load) * bears, rel=0.1)
    assert max(found.busy.values()) <= 1 + 1e-9
    if load < 0.9:
        share = load * bears * server_us / 1e6 / cpus
        assert found.busy["server's CPU"] == pytest.approx(share, rel=0.05)


def test_what_gives_out_first_is_busy_all_the_time_and_the_rest_is_not():
    server, client = (Cost(50, 0, 0), machine(cpus=1)), (Cost(10, 0, 0), machine(cpus=1))
    found = capacity_model.exchanged(Target(1000, 40_000, 33), server, client, 2, 0.5)
    assert found.busy["server's CPU"] > 0.98
    assert max(share for name, share in found.busy.items() if name != "server's CPU") < 0.5
    assert found.rate_per_s == pytest.approx(20_000, rel=0.02)
    # Those that never come are the latest: a queue without bound has no short median.
    assert found.latency_s > 0.1


@pytest.fixture(scope="module")
def measured() -> tuple:
    c10k, readiness = (views.Experiment("reference", name) for name in ("c10k", "readiness"))
    messages = million.per_message(c10k.valid_points)
    saturated = million.at_saturation(readiness.valid_points)
    busiest = million.at_saturation(readiness.lawful_points)
    return c10k, messages, saturated, busiest, connection_memory.load("reference")


def test_formulas_and_simulation_agree_with_what_was_measured_at_saturation(measured):
    saturated = measured[2]
    found = million.checked_saturation(saturated, 33)
    assert len(found) >= 5
    # The reply rate is the client's count, the formula's the kernel's CPU time of the server.
    assert found["ratio"].min() > 0.85 and found["ratio"].max() < 1.02
    for row in found.to_dicts():
        assert row["simulated"] == pytest.approx(row["formula"], rel=0.03)


def test_the_formula_agrees_with_how_busy_the_client_says_that_it_is(measured):
    counted, formula = million.loop_busy(measured[1])
    assert formula.trials == 3
    # CPU time has what the kernel does for others in it, which the loop does not count.
    assert counted.estimate == pytest.approx(formula.estimate, rel=0.1)


def test_the_tables_of_the_paper_follow_from_the_constants(measured):
    c10k, messages, _, busiest, record = measured
    sparse = million.costs(messages, record)
    busy = million.busy_costs(sparse, busiest)
    assert busy[0].cpu_us < sparse[0].cpu_us and busy[1].cpu_us < sparse[1].cpu_us
    made = {"sparse": sparse, "busy": busy}
    wanted, mine = million.target(33), million.this_machine(c10k.trials)
    asked = million.asked(wanted, made, {"as measured": mine, "assumed": million.ASSUMED})
    row = asked.row(0, named=True)
    assert row["CPU"] == math.ceil(million.RATE_PER_S * sparse[0].cpu_us / 1e6 / mine.cpus)
    assert row["first"] == "CPU" and row["ports"] is None
    servers = million.by_server(messages, record, wanted)
    assert servers["cpus"].to_list() == pytest.approx((servers["server_us"] * 10).to_list())
    checks = million.checked(wanted, made, {"as measured": mine})
    assert checks["ratio"].to_list() == pytest.approx([1] * len(checks), abs=0.05)


def test_without_a_measured_point_there_are_no_constants(measured):
    c10k, messages, saturated, _, record = measured
    assert million.costs(messages.clear(), record) is None
    assert million.busy_costs(million.costs(messages, record), saturated.clear()) is None
    assert million.this_machine(c10k.trials.clear()) is None
    assert million.checked_saturation(saturated.clear(), 33).is_empty()
    assert million.asked(million.target(33), {}, {}).is_empty()
