"""Scenarios of Kafka's RaftEventSimulationTest, and a leader that keeps its place while a voter comes and goes."""

import pytest

from controller_core.quorum.rules import Rules
from tests.effort import in_soak
from tests.sim.scenarios import Scenario

SEEDS = pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 6)), *in_soak(*range(6, 20))]
)
"""Twenty seeds for each scenario in a soak, six of them in a normal run and three in a quick run; `test_seeds` has a hundred further runs."""


@SEEDS
@pytest.mark.parametrize("voters", [1, 2, 5])
def test_an_initial_leader_is_elected(seed: int, voters: int) -> None:
    """canElectInitialLeader, with observers."""
    scenario = Scenario(seed, voters=voters, brokers=2)

    scenario.until_committed(10)


@SEEDS
@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize("is_graceful", [True, False])
def test_a_new_leader_is_elected_after_the_old_one_failed(seed: int, rules: Rules, *, is_graceful: bool) -> None:
    """canElectNewLeaderAfterOldLeaderFailure; the old one comes back and follows."""
    scenario = Scenario(seed, rules=(rules,))
    scenario.until_committed(10)
    old = scenario.leader_id

    if is_graceful:
        scenario.shut_down(old)
    else:
        scenario.kill(old)
    scenario.until_committed(10, {1, 2, 3} - {old})
    scenario.start(old)
    scenario.until_committed(10)

    assert scenario.leader_id != old


@SEEDS
def test_a_graceful_shutdown_of_the_leader_costs_no_timeout(seed: int) -> None:
    """EndQuorumEpoch: the first successor starts its election at once."""
    scenario = Scenario(seed)
    scenario.until_committed(10)
    scenario.run(3000)
    begin_ms = scenario.cluster.scheduler.now_ms

    scenario.shut_down(scenario.leader_id)
    scenario.until(lambda: scenario.cluster.leader() is not None)

    assert scenario.cluster.scheduler.now_ms - begin_ms < 200


@SEEDS
def test_a_majority_recovers_after_all_nodes_were_killed(seed: int) -> None:
    """CanRecoverAfterAllNodesKilled."""
    scenario = Scenario(seed, voters=5)
    scenario.until_committed(10)

    scenario.kill(1, 2, 3, 4, 5)
    scenario.start(1, 2, 3)

    scenario.until_committed(10, (1, 2, 3))


@SEEDS
def test_a_new_leader_is_elected_after_the_old_one_was_cut_off(seed: int) -> None:
    """CanElectNewLeaderAfterOldLeaderPartitionedAway."""
    scenario = Scenario(seed)
    scenario.until_committed(10)
    old = scenario.leader_id

    scenario.cut_off(old)

    scenario.until_committed(10, {1, 2, 3} - {old})


@SEEDS
def test_a_reachable_majority_makes_progress_and_the_rest_catches_up(seed: int) -> None:
    """CanMakeProgressIfMajorityIsReachable."""
    scenario = Scenario(seed, voters=5)
    scenario.until_committed(10)

    scenario.cluster.network.isolate({1, 2}, {3, 4, 5}, both_ways=True)
    scenario.until_committed(20, (3, 4, 5))
    scenario.cluster.network.heal()

    scenario.until_committed(10)


@SEEDS
@pytest.mark.shows("Q17")
def test_two_halves_that_overlap_elect_one_leader_and_keep_it(seed: int) -> None:
    """LeadershipAssignedOnlyOnceWithNetworkPartitionIfThereExistsMajority (KIP-996): without pre-vote leadership goes back and forth."""
    scenario = Scenario(seed, voters=5, append_every_ms=200)
    scenario.only_links((1, 3), (2, 4), (3, 4), (3, 5), (4, 5))

    scenario.until(lambda: scenario.cluster.leader() is not None)
    reached = {3: (1, 3, 4, 5), 4: (2, 3, 4, 5), 5: (3, 4, 5)}[scenario.leader_id]
    scenario.until_committed(30, reached)

    assert len(scenario.cluster.checks.leaders) == 1


@SEEDS
@pytest.mark.shows("Q17")
def test_a_leader_that_a_majority_reaches_keeps_its_place(seed: int) -> None:
    """LeadershipWillNotChangeDuringNetworkPartitionIfMajorityStillReachable."""
    scenario = Scenario(seed, voters=5, append_every_ms=200)
    scenario.until_committed(3)
    leader = scenario.leader_id
    first, second, third, fourth = sorted({1, 2, 3, 4, 5} - {leader})

    scenario.only_links((first, leader), (second, third), (leader, third), (leader, fourth), (third, fourth))
    scenario.until_committed(20, {1, 2, 3, 4, 5} - {second})
    scenario.run(5_000)

    assert (scenario.leader_id, len(scenario.cluster.checks.leaders)) == (leader, 1)


@SEEDS
@pytest.mark.shows("Q17")
def test_a_voter_that_comes_and_goes_takes_no_leadership(seed: int) -> None:
    """A voter frozen and thawed every three seconds: its pre-votes are refused, and it raises no epoch."""
    scenario = Scenario(seed, append_every_ms=500)
    scenario.until_committed(3)
    leader = scenario.leader_id
    voter = scenario.cluster.hosts[leader % 3 + 1]
    for _ in range(5):
        voter.paused_until_ms = scenario.cluster.scheduler.now_ms + 3000
        scenario.run(6000)

    assert (scenario.leader_id, len(scenario.cluster.checks.leaders)) == (leader, 1)


@SEEDS
def test_progress_goes_on_after_one_leader_after_the_other_was_cut_off(seed: int) -> None:
    """CanMakeProgressAfterBackToBackLeaderFailures."""
    scenario = Scenario(seed)
    scenario.until_committed(10)
    old = scenario.leader_id
    scenario.cut_off(old)
    scenario.until_another_leads(than=old)
    new = scenario.leader_id

    scenario.cluster.network.heal()
    scenario.cut_off(new)

    scenario.until_committed(10, {1, 2, 3} - {new})


@SEEDS
def test_committed_records_survive_the_loss_of_one_disk(seed: int) -> None:
    """canRecoverFromSingleNodeCommittedDataLoss: another leader is elected before the wiped voter is started."""
    scenario = Scenario(seed)
    scenario.until_committed(10)
    lost = scenario.cluster.scheduler.random.choice((1, 2, 3))

    scenario.wipe(lost)
    scenario.until_another_leads(than=lost)
    scenario.until_committed(1, {1, 2, 3} - {lost})
    scenario.start(lost)

    scenario.until_committed(10)


@SEEDS
def test_a_new_disk_joins_by_itself(seed: int) -> None:
    """KIP-853 with controller.quorum.auto.join.enable: a controller that is no voter becomes one."""
    scenario = Scenario(seed, voters=2, controllers=1, kraft_version=1, auto_join=True)

    scenario.until(
        lambda: all(host.node is not None and host.node.is_voter for host in scenario.cluster.hosts.values())
    )

    scenario.until_committed(10)


@SEEDS
def test_a_removed_leader_hands_over_after_the_commit(seed: int) -> None:
    """RemoveRaftVoter of the leader itself: it resigns when the others have committed that."""
    scenario = Scenario(seed, kraft_version=1)
    scenario.until_committed(10)
    old = scenario.leader_id
    scenario.cluster.remove(old)

    scenario.until_another_leads(than=old)
    scenario.until_committed(10)

    assert scenario.cluster.hosts[old].node is not None
    assert not scenario.cluster.hosts[old].node.is_voter


@SEEDS
def test_a_removal_that_only_the_removed_leader_has_stops_no_quorum_of_two(seed: int) -> None:
    """Its log is the longest, so it must be elected once more, although its own latest voter set does not have it."""
    scenario = Scenario(seed, voters=2, kraft_version=1)
    scenario.until_committed(10)
    old = scenario.leader_id
    scenario.cut_off(old)
    scenario.cluster.remove(old)
    scenario.run(100)
    scenario.kill(old)
    scenario.cluster.network.heal()
    scenario.start(old)

    scenario.until_committed(10)
