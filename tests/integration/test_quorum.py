"""Quorums of `steward quorum` and of Kafka's controllers: elections, replication, joining voters, and directories that change hands."""

import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from kafka_log.files.text_files import read_meta_properties
from kafka_wire.uuids import encode_uuid
from lab.peers.authority import Authority
from lab.peers.quorum import Formatter, Program, Voters, quorum
from lab.peers.quorum_security import mutual_tls, sasl_plaintext
from lab.processes.waiting import wait_until
from tests.effort import in_soak
from tests.integration.quorums import (
    PATIENCE_S,
    SHORT,
    STEADY,
    administer,
    answers_to_old_fetches,
    dumped_metadata,
    features,
    served_versions,
    snapshots,
    start,
    stop_all,
    wait_for_commits,
)

pytestmark = pytest.mark.kafka


@pytest.mark.shows("Q7", "Q16")
def test_a_voter_of_steward_replicates_the_log_of_a_java_leader_and_takes_part_in_the_next_election() -> None:
    """Two of Java and one of Steward; the same committed bytes are on all three disks, and kafka-dump-log reads Steward's.

    Both serve the same versions, and refuse a Fetch below version 13 alike.
    """
    with quorum((1, 2), stewards=(3,), settings=SHORT, start=False) as voters:
        start([voters[1], voters[2]])
        leader, epoch = voters.wait_for_leader()
        voters[3].start()
        wait_for_commits(voters[3], beyond=10)
        versions, old_fetches = (
            [found(voters[node_id]) for node_id in (leader, 3)] for found in (served_versions, answers_to_old_fetches)
        )
        voters[leader].kill()
        _, later = voters.wait_for_leader(after_epoch=epoch)
        voters[leader].start()
        high_watermark = wait_for_commits(voters[3], beyond=0)
        wait_until(
            lambda: len({node.records_before(high_watermark) for node in voters.values()}) == 1,
            timeout_s=PATIENCE_S,
            what="all have the committed records",
        )
        stop_all(voters)
        dumped = dumped_metadata(voters[3])

        assert versions[1] == versions[0]
        assert old_fetches[1] == old_fetches[0]
        assert later > epoch
        assert high_watermark > 10
        assert "isvalid: false" not in dumped
        assert set(re.findall(r'payload: {"type":"(\w+)"', dumped)) >= {
            "FEATURE_LEVEL_RECORD",
            "NO_OP_RECORD",
            "REGISTER_CONTROLLER_RECORD",
        }


def test_a_java_controller_follows_a_leader_of_steward_and_the_tool_describes_the_quorum(authority: Authority) -> None:
    """One of Java and two of Steward at kraft.version 1, with client certificates; the second leader is Steward's or Java's."""
    security = mutual_tls(authority.store("controller", "/CN=controller"), Path(authority.certificate))
    with quorum((1,), stewards=(2, 3), settings=SHORT, voters=Voters.INITIAL, security=security, start=False) as voters:
        start([voters[2], voters[3]])
        voters.wait_for_leader()
        voters[1].start()
        wait_until(lambda: voters[1].leader_and_epoch()[0] in {2, 3}, timeout_s=PATIENCE_S, what="Java follows Steward")
        leader, epoch = voters.wait_for_leader()
        status = administer(voters, leader, "describe", "--status")
        replication = administer(voters, leader, "describe", "--replication")
        voters[leader].kill()
        second, _ = voters.wait_for_leader(after_epoch=epoch)

        assert f"LeaderId:               {leader}\n" in status
        assert status.count('"directoryId"') == 3
        assert [line.split()[0] for line in replication.splitlines()[1:] if "Follower" in line] == sorted(
            str(node_id) for node_id in voters if node_id != leader
        )
        assert second in set(voters) - {leader}


@pytest.mark.shows("Q16")
def test_voters_of_steward_elect_again_after_the_leader_was_killed() -> None:
    """Three of Steward, over SASL."""
    with quorum((), stewards=(1, 2, 3), settings=SHORT, security=sasl_plaintext()) as voters:
        leader, epoch = voters.wait_for_leader()
        voters[leader].kill()
        second, later = voters.wait_for_leader(after_epoch=epoch)
        voters[leader].start()
        wait_until(
            lambda: voters[leader].leader_and_epoch()[1] >= later, timeout_s=PATIENCE_S, what="the killed voter is back"
        )
        exit_code = voters[second].stop()

        assert voters.wait_for_leader(after_epoch=later)[0] != second
        assert exit_code == 0


@pytest.mark.shows("Q7", "Q8")
def test_a_voter_of_steward_replicates_the_load_of_a_raft_server() -> None:
    """TestRaftServer's own topic; the log stays equal while records arrive and the leader changes."""
    with quorum((1, 2), stewards=(3,), program=Program.RAFT_SERVER, settings=SHORT, start=False) as voters:
        start([voters[1], voters[2]])
        leader, epoch = voters.wait_for_leader()
        voters[3].start()
        high_watermark = wait_for_commits(voters[3], beyond=100)
        voters[leader].kill()
        voters.wait_for_leader(after_epoch=epoch)
        stop_all(voters)

        assert len({node.records_before(high_watermark) for node in voters.values()}) == 1


def test_a_snapshot_goes_from_a_java_leader_to_steward_and_from_a_leader_of_steward_to_a_wiped_java_voter() -> None:
    """A Fetch from offset 0 is answered with the latest snapshot; the log starts at its end, and nothing committed is lost."""
    often = {**SHORT, "metadata.log.max.record.bytes.between.snapshots": "100"}
    with quorum((1, 2), stewards=(3,), settings=often, start=False) as voters:
        # Steward writes none of its own: the fetched one stays the latest, however late the wiped voter asks for it.
        voters[3].configure({"metadata.log.max.record.bytes.between.snapshots": "20000000"})
        start([voters[1], voters[2]])
        leader, _ = voters.wait_for_leader()
        wait_until(lambda: bool(snapshots(voters[leader])), timeout_s=PATIENCE_S, what="a snapshot of Java")
        voters[3].start()
        wait_until(lambda: bool(snapshots(voters[3])), timeout_s=PATIENCE_S, what="the snapshot is fetched")
        high_watermark = wait_for_commits(voters[3], beyond=int(min(snapshots(voters[3]))[:20]))
        (fetched,) = snapshots(voters[3])
        stop_all(voters)
        content = (voters[3].log_folder / fetched).read_bytes()
        known = [voters[java].log_folder / fetched for java in (1, 2)]
        written_by_java = [path.read_bytes() for path in known if path.exists()]
        committed = voters[3].records_before(high_watermark)

        wiped = voters[1 if leader == 2 else 2]  # the leader, wiped, would end when it learns that it leads
        shutil.rmtree(wiped.data_folder)
        wiped.format(Formatter.STEWARD)
        start([wiped, voters[3]])
        wait_for_commits(voters[3], beyond=high_watermark)
        wait_until(
            lambda: wiped.log_content() == voters[3].log_content(),
            timeout_s=PATIENCE_S,
            what="the wiped voter has the log",
            context=voters.report,
        )
        stop_all(voters)

        assert content in written_by_java
        assert (wiped.log_folder / fetched).read_bytes() == content
        assert wiped.log_content().startswith(committed)
        assert voters[3].leader_and_epoch()[0] == 3


@pytest.mark.parametrize("leads", ["Java", "Steward"])
def test_an_observer_joins_the_voters_by_itself(leads: str) -> None:
    """KIP-853: Steward's node asks a leader of Java to add it, and the reverse."""
    java, steward = (1, 2) if leads == "Java" else (2, 1)
    settings = {**STEADY, "controller.quorum.auto.join.enable": "true"}
    with quorum(
        (java,), stewards=(steward,), voters=Voters.STANDALONE, first=1, settings=settings, start=False
    ) as voters:
        voters[1].start()
        wait_until(lambda: voters[1].leader_and_epoch()[0] == 1, timeout_s=PATIENCE_S, what="node 1 leads")
        voters[2].start()
        steward_node = voters[steward]
        wait_until(
            lambda: (
                steward_node.metric("kafka_server_raft_metrics_number_of_voters") == 2
                and steward_node.metric("kafka_server_raft_metrics_uncommitted_voter_change") == 0
            ),
            timeout_s=PATIENCE_S,
            what="both are voters",
        )

        assert voters[1].leader_and_epoch()[0] == 1


def test_the_tool_adds_and_removes_voters_at_a_leader_of_steward_and_removes_that_leader() -> None:
    """KIP-853: add-controller and remove-controller, of a Java controller and of a Steward voter; the removed leader hands over."""
    with quorum(
        (2,),
        stewards=(1, 3),
        voters=Voters.STANDALONE,
        first=1,
        formatter=Formatter.STEWARD,
        settings=STEADY,
        start=False,
    ) as nodes:
        nodes[1].start()
        start([nodes[2], nodes[3]])

        def wait_for(number_of: str, count: int, node_id: int) -> None:
            wait_until(
                lambda: nodes[node_id].metric(f"kafka_server_raft_metrics_number_of_{number_of}") == count,
                timeout_s=PATIENCE_S,
                what=f"node {node_id} knows {count} {number_of}",
            )

        def directory_id(node_id: int) -> str:
            identity = read_meta_properties(nodes[node_id].data_folder)
            assert identity is not None
            assert identity.directory_id is not None
            return encode_uuid(identity.directory_id)

        def remove(node_id: int) -> str:
            voter = ("--controller-id", str(node_id), "--controller-directory-id", directory_id(node_id))
            return administer(nodes, 1, "remove-controller", *voter)

        wait_for("observers", 2, node_id=1)
        added = [administer(nodes, 1, "add-controller", config=str(nodes[new].properties)) for new in (2, 3)]
        wait_for("voters", 3, node_id=1)
        described = administer(nodes, 1, "describe", "--status")
        removed = [remove(2), remove(1)]
        wait_until(lambda: nodes[3].leader_and_epoch()[0] == 3, timeout_s=PATIENCE_S, what="the last voter leads")
        wait_for("voters", 1, node_id=3)

        assert [text.split(" with directory id ")[0] for text in added] == ["Added controller 2", "Added controller 3"]
        assert described.count('"directoryId"') == 3
        assert removed == [
            f"Removed  KRaft controller {node_id} with directory id {directory_id(node_id)}\n" for node_id in (2, 1)
        ]


@pytest.mark.shows("Q7")
def test_a_directory_goes_from_java_to_steward_and_back() -> None:
    """Each continues the log of the other in a later epoch, and loses nothing."""
    with quorum((1,), formatter=Formatter.KAFKA, settings=SHORT) as voters, closing(voters.as_steward(1)) as steward:
        java = voters[1]
        wait_until(lambda: java.log_bytes() > 1_000, timeout_s=PATIENCE_S, what="a log")
        java.stop()
        first, (_, first_epoch) = java.log_content(), java.leader_and_epoch()
        steward.start()
        wait_until(lambda: steward.leader_and_epoch()[1] > first_epoch, timeout_s=PATIENCE_S, what="Steward leads")
        wait_for_commits(steward, beyond=0)
        exit_code = steward.stop()
        second, (_, second_epoch) = steward.log_content(), steward.leader_and_epoch()
        java.start()
        wait_until(lambda: java.leader_and_epoch()[1] > second_epoch, timeout_s=PATIENCE_S, what="Java leads again")
        wait_until(lambda: java.log_bytes() > len(second) + 200, timeout_s=PATIENCE_S, what="Java appends")

        assert exit_code == 0
        assert second.startswith(first)
        assert java.log_content().startswith(second)


@pytest.mark.parametrize("java", [(1,), *in_soak(((),))], ids=["one of Java", "all of Steward"])
def test_the_tool_raises_kraft_version_while_a_leader_of_steward_works(java: tuple[int, ...]) -> None:
    """KIP-853's online upgrade by kafka-features: a dry run, a refusal, the upgrade; then the voters are in the log of each."""
    stewards = tuple(sorted({1, 2, 3} - set(java)))
    with quorum(java, stewards=stewards, settings=STEADY, start=False) as voters:
        start(voters[node_id] for node_id in stewards)
        leader, _ = voters.wait_for_leader()
        start(voters[node_id] for node_id in java)
        results = {}

        def dry_run_succeeds() -> bool:
            results["dry run"] = features(voters, "upgrade", "--feature", "kraft.version=1", "--dry-run")
            return results["dry run"][0] == 0

        wait_until(dry_run_succeeds, timeout_s=PATIENCE_S, what="all voters have reported themselves")
        before = administer(voters, leader, "describe", "--status")
        refused = features(voters, "upgrade", "--feature", "metadata.version=29")
        done = features(voters, "upgrade", "--feature", "kraft.version=1")
        after = administer(voters, leader, "describe", "--status")
        _, described = features(voters, "describe")
        wait_until(
            lambda: all(b"CONTROLLER" in node.log_content() for node in voters.values()),
            timeout_s=PATIENCE_S,
            what="the voters' endpoints are in all logs",
        )

        assert done == (0, "kraft.version was upgraded to 1.\n")
        assert refused[0] == 1
        assert "without setting the upgrade type to either safe or unsafe downgrade" in refused[1]
        assert results["dry run"][1] == "kraft.version can be upgraded to 1.\n"
        assert (before.count('"directoryId"'), after.count('"directoryId"')) == (0, 3)
        level = next(line for line in described.splitlines() if "kraft.version" in line).partition(
            "SupportedMaxVersion:"
        )[2]
        assert level.split()[:3] == ["1", "FinalizedVersionLevel:", "1"]
        assert voters.wait_for_leader()[0] == leader
