"""Faults of quorums of Steward and Java under load: frozen voters, leaders whose last records are cut, a full disk, an id that is used twice."""

import resource
from contextlib import closing
from dataclasses import replace

import pytest

from kafka_log.files.text_files import draw_directory_id
from lab.peers.quorum import Formatter, Load, Member, Program, QuorumNode, Voters, quorum
from lab.processes.ports import free_port
from lab.processes.waiting import wait_until
from tests.effort import in_soak
from tests.integration.quorums import PATIENCE_S, SHORT, STEADY, start, stop_all, wait_for_commits

pytestmark = pytest.mark.kafka

LOAD = Load().also_of_steward()

LATE = {**STEADY, "controller.quorum.election.timeout.ms": "4000"}
"""Makes a voter lose the first election against one that runs already, and keep that leader although a busy machine delays it for seconds."""


@pytest.mark.shows("Q7", "Q16", "Q17")
def test_a_quorum_of_five_stewards_commits_while_its_leader_and_another_voter_are_frozen() -> None:
    """A frozen process keeps its connections; thawed, it follows the next leader, who keeps its place."""
    with quorum((), stewards=(1, 2, 3, 4, 5), program=Program.RAFT_SERVER, settings=SHORT, load=LOAD) as voters:
        leader, epoch = voters.wait_for_leader()
        wait_for_commits(voters[leader], beyond=100)
        other = next(node_id for node_id in voters if node_id != leader)
        for frozen in (leader, other):
            voters[frozen].pause()
        second, later = voters.wait_for_leader(after_epoch=epoch)
        high_watermark = wait_for_commits(voters[second], beyond=voters[second].high_watermark() + 100)
        for frozen in (leader, other):
            voters[frozen].resume()
        wait_until(
            lambda: [node.leader_and_epoch() for node in voters.values()] == [(second, later)] * 5,
            timeout_s=PATIENCE_S,
            what="the thawed voters follow",
        )
        for node in voters.values():
            wait_for_commits(node, beyond=high_watermark)
        stop_all(voters)

        assert len({node.records_before(high_watermark) for node in voters.values()}) == 1


@pytest.mark.parametrize(
    ("java", "stewards", "leader"), [((1, 2), (3,), 3), *in_soak(((1,), (2, 3), 1))], ids=["Steward", "Java"]
)
@pytest.mark.shows("Q7", "Q8", "Q10")
def test_a_leader_whose_followers_were_frozen_cuts_what_only_it_has(
    java: tuple[int, ...], stewards: tuple[int, ...], leader: int
) -> None:
    """A leader of Steward among Java voters, and the reverse: it is killed with records that no other voter has, and returns as a follower."""
    with quorum(java, stewards=stewards, program=Program.RAFT_SERVER, settings=SHORT, load=LOAD, start=False) as voters:
        followers = [node for node_id, node in voters.items() if node_id != leader]
        for node in followers:
            node.configure(LATE)
        # On a busy machine a process of either kind may start several seconds later than the other, as long as a first election waits.
        voters[leader].start()
        start(followers)
        wait_until(
            lambda: all(node.leader_and_epoch()[0] == leader and node.log_bytes() > 2_000 for node in followers),
            timeout_s=PATIENCE_S,
            what=f"the followers have records of leader {leader}",
            context=voters.report,
        )
        for node in followers:
            node.pause()
        replicated = max(node.log_bytes() for node in followers)
        wait_until(
            lambda: voters[leader].log_bytes() > replicated + 5_000,
            timeout_s=PATIENCE_S,
            what="the leader has records of its own",
        )
        _, epoch = voters[leader].leader_and_epoch()
        voters[leader].kill()
        written = voters[leader].log_content()
        for node in followers:
            node.resume()
        voters.wait_for_leader(after_epoch=epoch)
        voters[leader].start()
        wait_until(
            lambda: not voters[leader].log_content().startswith(written),
            timeout_s=PATIENCE_S,
            what="the former leader has truncated its log",
        )
        wait_until(
            lambda: voters[leader].log_bytes() > len(written),
            timeout_s=PATIENCE_S,
            what="it has records of its successor",
        )
        stop_all(voters)
        shortest, middle, longest = sorted((node.log_content() for node in voters.values()), key=len)

        assert middle.startswith(shortest)
        assert longest.startswith(middle)
        assert shortest.startswith(written[:replicated])


@pytest.mark.shows("Q7")
def test_a_voter_of_steward_whose_disk_is_full_ends_with_an_error_and_goes_on_once_there_is_room() -> None:
    """The limit of a file's size refuses a write as a full disk does. Nothing that was committed is lost."""
    with quorum((1,), stewards=(2,), program=Program.RAFT_SERVER, settings=SHORT, start=False) as voters:
        java, steward = voters[1], voters[2]
        steward.configure(LATE)
        start([java, steward])
        high_watermark = wait_for_commits(steward, beyond=20)
        limit_bytes = steward.log_bytes() + 5_000
        resource.prlimit(steward.process.pid, resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
        exit_code = steward.process.wait()
        message = steward.process.log_text().splitlines()[-1]
        steward.start()
        wait_for_commits(steward, beyond=high_watermark + 100)
        stop_all(voters)
        shorter, longer = sorted((node.log_content() for node in voters.values()), key=len)

        assert exit_code == 1
        assert message.startswith("steward quorum: ")
        assert "File too large" in message
        assert str(steward.log_folder) in message
        assert longer.startswith(shorter)


def test_a_second_process_with_the_id_of_a_leader_and_another_directory_only_observes() -> None:
    """KIP-853: a voter is an id and a directory id. The copy logs that its id leads, does not act on it, and follows the next leader."""
    with quorum((), stewards=(1, 2, 3), voters=Voters.INITIAL, formatter=Formatter.STEWARD, settings=SHORT) as voters:
        leader, epoch = voters.wait_for_leader()
        plan = replace(voters.plan, voters=Voters.STANDALONE)
        copy = QuorumNode(
            plan, Member(leader, free_port(), draw_directory_id()), voters.folder / "copy", is_steward=True
        )
        with closing(copy):
            copy.format(Formatter.STEWARD)
            copy.start()
            wait_until(
                lambda: "another process has this node.id" in copy.process.log_text(),
                timeout_s=PATIENCE_S,
                what="the copy learns that its id leads",
            )
            kept = voters.leader_and_epoch()
            voters[leader].kill()
            second, later = voters.wait_for_leader(after_epoch=epoch)
            wait_until(
                lambda: copy.leader_and_epoch() == (second, later), timeout_s=PATIENCE_S, what="the copy follows"
            )
            wait_until(
                lambda: voters[second].metric("kafka_server_raft_metrics_number_of_observers") == 1,
                timeout_s=PATIENCE_S,
                what="the copy is an observer",
            )

            assert kept == (leader, epoch)
            assert second in {1, 2, 3} - {leader}
            assert voters[second].metric("kafka_server_raft_metrics_number_of_voters") == 3
            assert copy.metric('kafka_server_raft_metrics_current_state{state="observer"}') == 1
