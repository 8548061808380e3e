"""Faults of a round of chaos: repeatable, and never more than the promises allow."""

from e2e.faults_plan import MOST_AT_ONCE, POSSIBLE, REPLICATED, Fault, Target, draw_round

SEEDS = 50

ROUNDS = 20


def _rounds() -> list[list[Fault]]:
    return [draw_round(seed, number) for seed in range(SEEDS) for number in range(ROUNDS)]


def test_a_seed_draws_the_same_round_each_time() -> None:
    """The seed that a failed run prints repeats its faults."""
    assert _rounds() == _rounds()


def test_of_brokers_and_of_zookeeper_servers_one_at_most_is_hurt_at_a_time() -> None:
    """With two of three down neither min.insync.replicas 2 nor a quorum is left."""
    hurt = [[fault.target for fault in faults] for faults in _rounds()]

    assert all(1 <= len(targets) <= MOST_AT_ONCE for targets in hurt)
    assert all(targets.count(target) <= 1 for targets in hurt for target in REPLICATED)


def test_every_fault_comes_up_within_a_thousand_rounds() -> None:
    """Every entry of the table is used."""
    assert set(POSSIBLE) == {(fault.kind, fault.target) for faults in _rounds() for fault in faults}
    assert {fault.target for faults in _rounds() for fault in faults} == set(Target)
