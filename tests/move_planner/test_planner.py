"""Properties of plans over one load: validity, minimal movement, lower bound, budget."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.columns import pad, unpad_all
from controller_core.rules.placement import Racks, place_replicas
from move_planner import Plan, PlanRequest, Reason, plan_moves
from tests.effort import examples
from tests.twins.plain_plan import plan_plain


@st.composite
def requests(draw: st.DrawFn, *, racks: bool | None = None, loads: bool | None = None) -> PlanRequest:
    """Small clusters with random replicas, new and drained brokers, and sometimes another replication factor."""
    count = draw(st.integers(2, 8))
    with_racks = draw(st.booleans()) if racks is None else racks
    names = st.sampled_from(["a", "b", "c", "d"])
    brokers: Racks = {broker: draw(names) if with_racks else None for broker in range(count)}
    current = draw(st.integers(1, count))
    lists = st.lists(st.integers(0, current - 1), min_size=1, max_size=3, unique=True)
    replicas = draw(st.lists(lists, min_size=1, max_size=25))
    with_loads = draw(st.booleans()) if loads is None else loads
    drawn = draw(st.lists(st.integers(0, 1000), min_size=len(replicas), max_size=len(replicas)))
    return PlanRequest(
        replicas=pad(replicas),
        brokers=brokers,
        leaders=np.array([row[0] for row in replicas], dtype=np.int32),
        loads=np.array(drawn, dtype=np.int64) if with_loads else None,
        drained=frozenset(draw(st.sets(st.integers(0, count - 1), max_size=count - 1))),
        replication_factor=draw(st.sampled_from([None, None, 1, 2, 3])),
    )


def after(request: PlanRequest, plan: Plan) -> list[list[int]]:
    """The replicas of every partition after all steps."""
    replicas = unpad_all(request.replicas)
    for step in plan.steps():
        replicas[step.row] = list(step.replicas)
    return replicas


def load_of(request: PlanRequest) -> list[int]:
    """The load of a replica of each partition."""
    return [1] * len(request.replicas) if request.loads is None else request.loads.tolist()


def copied_bytes(request: PlanRequest, replicas: list[list[int]]) -> int:
    """Bytes of all replicas on brokers that had none of the partition before."""
    before = unpad_all(request.replicas)
    each = zip(load_of(request), before, replicas, strict=True)
    return sum(load * len(set(new) - set(old)) for load, old, new in each)


def held_by(request: PlanRequest, replicas: list[list[int]]) -> Counter[int]:
    """Loads by broker."""
    held: Counter[int] = Counter()
    for load, row in zip(load_of(request), replicas, strict=True):
        held.update(dict.fromkeys(row, load))
    return held


def outside(request: PlanRequest, plan: Plan, replicas: list[list[int]]) -> int:
    """Total distance of brokers that stay from their ranges."""
    held, figures = held_by(request, replicas), plan.resources[0]
    ends = zip(plan.ids.tolist(), figures.lower.tolist(), figures.upper.tolist(), plan.drained.tolist(), strict=True)
    return sum(
        max(0, held[broker] - upper, lower - held[broker]) for broker, lower, upper, drained in ends if not drained
    )


def racks_used(request: PlanRequest, row: list[int]) -> int:
    """Racks of brokers that stay."""
    return len({request.brokers[broker] for broker in row if broker not in request.drained})


@pytest.mark.shows("C3")
@examples(20)
@given(requests())
def test_every_plan_is_valid(request: PlanRequest) -> None:
    """C3: no broker twice; new replicas only on brokers that stay; the requested or the previous number of replicas."""
    plan = plan_moves(request)
    staying = request.brokers.keys() - request.drained

    for old, new in zip(unpad_all(request.replicas), after(request, plan), strict=True):
        factor = len(old) if request.replication_factor is None else request.replication_factor
        assert len(set(new)) == len(new)
        assert set(new) - set(old) <= staying
        assert len(new) in ({factor} if factor <= len(staying) or factor <= len(old) else range(len(old), factor + 1))


@examples(20)
@given(requests())
def test_drained_brokers_are_empty_where_enough_brokers_stay(request: PlanRequest) -> None:
    """A replica stays on a drained broker only if its partition is on every broker that stays."""
    replicas = after(request, plan_moves(request))
    staying = request.brokers.keys() - request.drained

    assert all(staying <= set(row) for row in replicas if not set(row) <= staying)


@pytest.mark.shows("F14")
@examples(20)
@given(requests(racks=True))
def test_replicas_are_in_distinct_racks_where_enough_racks_exist(request: PlanRequest) -> None:
    """This is always possible, since any broker of another rack can take a replica."""
    plan = plan_moves(request)
    racks = {rack for broker, rack in request.brokers.items() if broker not in request.drained}

    for row in after(request, plan):
        staying = [broker for broker in row if broker not in request.drained]
        assert racks_used(request, row) == min(len(racks), len(staying))


@examples(20)
@given(requests())
def test_figures_match_the_steps(request: PlanRequest) -> None:
    """A plan is approved by its figures."""
    plan = plan_moves(request)
    replicas = after(request, plan)
    held = held_by(request, replicas)

    assert copied_bytes(request, replicas) == plan.copied_bytes == int(plan.bytes.sum())
    assert [held[broker] for broker in plan.ids.tolist()] == plan.resources[0].after.tolist()


@pytest.mark.shows("F13")
@examples(20)
@given(requests())
def test_without_levelling_only_required_moves_are_planned(request: PlanRequest) -> None:
    """Partitions without a drained broker, a second replica in a rack or another replication factor keep their replicas."""
    request = replace(request, level=False)
    plan = plan_moves(request)
    staying = request.brokers.keys() - request.drained
    before = unpad_all(request.replicas)

    for step in plan.steps():
        row = before[step.row]
        racks = [request.brokers[broker] for broker in row if broker in staying]
        doubled = None not in racks and len(set(racks)) < len(racks)
        assert (
            not set(row) <= staying
            or doubled
            or (request.replication_factor is not None and step.reason == Reason.FACTOR)
        )
    assert copied_bytes(request, after(request, plan)) == plan.copied_bytes


@examples(20)
@given(requests())
def test_without_racks_second_replicas_in_a_rack_stay(request: PlanRequest) -> None:
    """Only drains and the replication factor cause moves, and no rack is listed as unreached."""
    request = replace(request, level=False, racks=False)
    plan = plan_moves(request)
    staying = request.brokers.keys() - request.drained
    before = unpad_all(request.replicas)

    assert all(
        not set(before[step.row]) <= staying or request.replication_factor not in {None, len(before[step.row])}
        for step in plan.steps()
    )
    assert not any("rack" in shortfall.why for shortfall in plan.unreached)


@pytest.mark.shows("E10")
@examples(20)
@given(requests(racks=False))
def test_lower_bound_is_the_larger_of_surplus_and_deficit(request: PlanRequest) -> None:
    """Computed independently: surplus over the allowed mean plus drained brokers, or deficits (without racks)."""
    request = replace(request, replication_factor=None)
    staying = sorted(request.brokers.keys() - request.drained)
    before = unpad_all(request.replicas)
    loads, held = load_of(request), held_by(request, before)
    kept = sum(load * min(len(row), len(staying)) for load, row in zip(loads, before, strict=True))
    mean = kept / len(staying)
    usual = max(1, int(np.median([load for load in loads if load] or [1])))
    above = max(np.floor(mean * 1.05), np.ceil(mean / usual - 1e-9) * usual)
    below = min(np.ceil(mean * 0.95), np.floor(mean / usual + 1e-9) * usual)

    surplus = sum(max(0, held[broker] - above) for broker in staying)
    drained = sum(held[broker] for broker in held if broker not in staying)
    unmovable = sum(load * max(0, len(row) - len(staying)) for load, row in zip(loads, before, strict=True))
    deficits = sum(max(0, below - held[broker]) for broker in staying)

    assert plan_moves(request).lower_bound_bytes == max(surplus + drained - unmovable, deficits)


@examples(20)
@given(requests(racks=False, loads=False))
def test_plan_of_counts_equals_the_plain_twin_within_one_copy(request: PlanRequest) -> None:
    """With equal replicas and without racks both planners reach the same ranges; ties may differ by one copy."""
    request = replace(request, replication_factor=None)
    plan = plan_moves(request)
    replicas, plain = after(request, plan), plan_plain(request)

    assert outside(request, plan, replicas) == outside(request, plan, plain)
    assert plan.copied_bytes <= copied_bytes(request, plain) + 1
    assert plan.lower_bound_bytes <= plan.copied_bytes or outside(request, plan, replicas)


@examples(20)
@given(requests())
def test_plan_is_as_good_as_that_of_the_plain_twin(request: PlanRequest) -> None:
    """Its ranges and its bytes are worse by at most one replica per broker."""
    plan = plan_moves(request)
    plain = plan_plain(request)
    largest, brokers = max(load_of(request)), len(request.brokers)

    assert outside(request, plan, after(request, plan)) <= outside(request, plan, plain) + largest * brokers
    assert plan.copied_bytes <= copied_bytes(request, plain) + largest * brokers


@pytest.mark.shows("E10")
@examples(20)
@given(requests(), st.integers(0, 3000))
def test_plan_with_a_budget_is_a_prefix_of_the_plan_without(request: PlanRequest, budget: int) -> None:
    """The steps have the same order, drains first."""
    whole = plan_moves(request)
    cut = plan_moves(replace(request, budget_bytes=budget))
    moves = [step.row for step in cut.steps() if step.reason is not Reason.LEADERS]

    assert cut.copied_bytes <= budget
    assert moves == whole.rows[: len(moves)].tolist()
    assert cut.copied_bytes + cut.cut_bytes == whole.copied_bytes
    assert len(moves) + cut.cut_steps == (whole.reasons != Reason.LEADERS).sum()
    assert cut.lower_bound_bytes == whole.lower_bound_bytes
    assert cut.reasons.tolist() == sorted(cut.reasons.tolist())


@examples(20)
@given(requests())
def test_same_request_gives_the_same_plan(request: PlanRequest) -> None:
    """A plan is approved by its digest, so it must be reproducible."""
    first, second = plan_moves(request), plan_moves(request)

    assert (first.rows.tolist(), first.replicas.tolist()) == (second.rows.tolist(), second.replicas.tolist())


@examples(20)
@given(requests(loads=False))
def test_no_moves_are_planned_after_a_complete_plan(request: PlanRequest) -> None:
    """The operator plans repeatedly and must not move an even cluster."""
    plan = plan_moves(request)
    again = plan_moves(replace(request, replicas=pad(after(request, plan)), leaders=None))

    assert plan.unreached or not len(again.rows)


def cluster(brokers: int, partitions: int, factor: int = 3, racks: int = 0) -> PlanRequest:
    """An even cluster, placed by Kafka's algorithm."""
    by_id: Racks = {broker: f"rack-{broker % racks}" if racks else None for broker in range(brokers)}
    return PlanRequest(place_replicas(by_id, partitions, factor, 0, 0), by_id)


def test_even_cluster_needs_no_moves() -> None:
    """The plan is empty."""
    assert len(plan_moves(cluster(5, 100)).rows) == 0


def test_no_partitions_need_no_moves() -> None:
    """A new cluster is even and has nothing unreached."""
    plan = plan_moves(PlanRequest(np.empty((0, 3), dtype=np.int32), {0: None, 1: None}))

    assert (len(plan.rows), plan.lower_bound_bytes, plan.unreached) == (0, 0, ())


def test_empty_partitions_leave_drained_brokers() -> None:
    """Although nothing has to be copied."""
    request = replace(cluster(10, 1000), drained=frozenset({1}), loads=np.zeros(1000, dtype=np.int64))
    plan = plan_moves(request)

    assert (plan.copied_bytes, plan.unreached) == (0, ())
    assert all(1 not in row for row in after(request, plan))


@pytest.mark.parametrize(("factor", "least"), [(2, 634), (4, 2000)])
def test_replication_factor_is_reached_near_the_bound(factor: int, least: int) -> None:
    """Two brokers are added. A larger factor copies the additional replicas; with a smaller one the new brokers still take their part."""
    by_id: Racks = dict.fromkeys(range(12))
    plan = plan_moves(replace(cluster(10, 2000), brokers=by_id, replication_factor=factor))

    assert (plan.lower_bound_bytes, plan.unreached) == (least, ())
    assert plan.copied_bytes <= 1.1 * least


def test_brokers_are_drained_one_after_another() -> None:
    """With a budget for one broker, one of two is empty."""
    request = replace(cluster(10, 1000), drained=frozenset({3, 7}), budget_bytes=400)
    plan = plan_moves(request)
    held = held_by(request, after(request, plan))

    assert (held[3], held[7] > 0) == (0, True)
    assert 350 <= plan.copied_bytes <= 400
    assert any(shortfall.broker == 7 and "budget" in shortfall.why for shortfall in plan.unreached)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (replace(cluster(3, 6), drained=frozenset({1})), "too few brokers to drain to"),
        (replace(cluster(3, 6), replication_factor=5), "only 3 brokers stay"),
        (cluster(6, 12, 3, racks=2), "more replicas than there are racks"),
        (PlanRequest(pad([[0]] * 20), {0: None, 1: None}, loads=np.array([1000] + [1] * 19)), "larger than the range"),
        (PlanRequest(pad([[0]]), {0: "a", 1: None}), "racks are ignored"),
        (PlanRequest(pad([[0, 1, 2]] * 9), {0: "a", 1: "b", 2: "c", 3: "c"}), "racks are of different sizes"),
        (PlanRequest(pad([[0]]), {}), "too few brokers to drain to"),
    ],
)
def test_unreached_goals_are_listed_with_the_reason(request_: PlanRequest, message: str) -> None:
    """They are no exceptions: the message names what to change."""
    assert any(message in shortfall.why for shortfall in plan_moves(request_).unreached)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loads": np.array([1])}, "one entry for each"),
        ({"loads": np.array([-1] * 6)}, "negative"),
        ({"replication_factor": 0}, "not between"),
        ({"budget_bytes": -1}, "negative"),
        ({"loads": np.array([2**59] * 6)}, "larger unit"),
    ],
)
def test_contradictory_request_raises_value_error(wrong: dict[str, object], message: str) -> None:
    """Callers check user input before."""
    with pytest.raises(ValueError, match=message):
        plan_moves(replace(cluster(3, 6), **wrong))


@pytest.mark.shows("F13")
@pytest.mark.parametrize("racks", [0, 5])
@pytest.mark.parametrize("by_bytes", [False, True])
def test_large_plan_is_near_the_bound(racks: int, by_bytes: bool) -> None:
    """Benchmark P9 at a tenth of its size: at most 1.1 times the lower bound; loads and leader counts within 5 percent."""
    request = cluster(100, 10_000, racks=racks)
    brokers: Racks = {broker: f"rack-{broker % racks}" if racks else None for broker in range(110)}
    loads = np.random.default_rng(9).lognormal(20, 0.8, 10_000).astype(np.int64) if by_bytes else None
    plan = plan_moves(replace(request, brokers=brokers, drained=frozenset(range(0, 100, 20)), loads=loads))
    staying, load = ~plan.drained, plan.resources[0]
    led = Counter(row[0] for row in after(replace(request, loads=loads), plan))
    leads = np.array([led[broker] for broker in plan.ids[staying].tolist()]) * int(staying.sum()) / 10_000

    assert plan.unreached == ()
    assert plan.lower_bound_bytes <= plan.copied_bytes <= 1.1 * plan.lower_bound_bytes
    assert np.abs(load.after / np.maximum(load.target, 1) - 1)[staying].max() <= 0.0501
    assert np.abs(leads - 1).max() < 0.06
