"""Changes of partitions in KRaft mode compared with Kafka 4.3's PartitionChangeBuilder, field by field."""

import random
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from controller_core.model import NO_LEADER, Broker, Cluster, Move, Replicas, changes, quorum_changes
from controller_core.model.columns import pad, unpad
from controller_core.model.mode_rules import kraft_rules
from controller_core.model.move import plan_move, without
from controller_core.quorum_mode.transitions import apply
from controller_core.rules.complete_change import Electing, Target, complete_change
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kafka_metadata.metadata_versions import DIRECTORIES_SINCE, ELR_VERSION, METADATA_VERSION
from tests.controller_core.rules.judged.conftest import Judge
from tests.effort import EXHAUSTIVE

pytestmark = pytest.mark.java

BROKERS = range(12)
GROUPS = 200 if EXHAUSTIVE else 60
CASES_PER_GROUP = 50
"""Cases of a group have the same brokers and features, and are changed at once."""

HIGH = 1 << 64


@dataclass
class Case:
    """One partition, and what is to change."""

    replicas: Replicas
    isr: Replicas
    leader: int
    elr: Replicas
    last_known: Replicas
    running: Move | None
    min_isr: int
    recovering: bool
    unclean: bool
    directories: tuple[UUID, ...]
    target_isr: Replicas
    target: Move | None = None
    """The move that starts, or (with no adding and no removing replicas) that ends now."""
    target_recovering: bool | None = None
    directory: tuple[int, int] | None = None


@dataclass
class Group:
    """Partitions of one cluster that are changed at once."""

    elr: bool
    version: int
    preferred: bool
    may_lead: set[int]
    lost: set[int]
    cases: list[Case] = field(default_factory=list)


def generated(source: random.Random) -> Group:
    """Generate a group: some brokers leave, and partitions are in any state that Kafka can write."""
    may_lead = set(source.sample(BROKERS, source.randint(3, len(BROKERS))))
    elr = source.random() < 0.7
    lost = set(source.sample(BROKERS, source.choice([0, 1, 2]))) if elr else set()
    version = 30 if elr else source.choice([7, 11, 12, 30])
    group = Group(elr, version, source.random() < 0.2, may_lead - lost, lost)
    group.cases = [generated_case(source, group) for _ in range(CASES_PER_GROUP)]
    return group


def generated_case(source: random.Random, group: Group) -> Case:
    """Generate a partition and a target."""
    replicas = tuple(source.sample(BROKERS, source.randint(1, 5)))
    min_isr = source.randint(1, 4)
    isr = tuple(source.sample(replicas, source.randint(0 if group.elr else 1, len(replicas))))
    leader = source.choice([NO_LEADER, *isr])
    elr: Replicas = ()
    if group.elr and len(isr) < min(min_isr, len(replicas)):
        others = without(replicas, isr)
        elr = tuple(sorted(source.sample(others, source.randint(0, len(others)))))
    last_known: Replicas = ()
    if group.elr and leader == NO_LEADER and source.random() < 0.7:
        last_known = tuple(source.sample(replicas, min(len(replicas), source.choice([1, 1, 1, 2]))))
    running = None
    if source.random() < 0.3:
        removing = tuple(source.sample(replicas, source.randint(0, len(replicas) - 1)))
        rest = without(replicas, removing)
        adding = tuple(source.sample(rest, source.randint(0, len(rest))))
        if adding or removing:
            running = Move(replicas, adding, removing)
    directories = tuple(source.choice([UUID(int=HIGH + replica)] * 4 + [UNASSIGNED_DIRECTORY]) for replica in replicas)
    if group.version < DIRECTORIES_SINCE:
        directories = (MIGRATING_DIRECTORY,) * len(replicas)
    case = Case(
        replicas,
        isr,
        leader,
        elr,
        last_known,
        running,
        min_isr,
        source.random() < 0.2,
        source.random() < 0.4,
        directories,
        isr,
    )
    set_target(source, group, case)
    return case


def set_target(source: random.Random, group: Group, case: Case) -> None:
    """Draw what is to change: members leave, the leader asks for an ISR, a move starts or is cancelled, a directory, or nothing."""
    kind = source.choice(["leave", "leave", "alter", "move", "cancel", "directory", "nothing"])
    if kind == "leave":
        case.target_isr = tuple(broker for broker in case.isr if broker in group.may_lead)
    elif kind == "alter" and case.leader in group.may_lead:
        others = without(case.replicas, (case.leader,))
        case.target_isr = (case.leader, *source.sample(others, source.randint(0, len(others))))
        case.target_recovering = case.recovering and len(case.target_isr) == 1 and source.random() < 0.5
    elif kind == "move":
        adding = () if case.running is None else case.running.adding
        wanted = tuple(source.sample(BROKERS, source.randint(1, 5)))
        case.target = plan_move(case.replicas, adding, wanted)
    elif kind == "cancel" and case.running is not None:
        origin = case.running.origin
        kept = without(case.isr, case.running.adding)
        if origin and kept:
            case.target_isr, case.target = kept, Move(origin, (), ())
    elif kind == "directory":
        case.directory = (source.choice(case.replicas), source.randint(100, 105))
    if kind not in {"move", "cancel"}:
        case.target_isr = without(case.target_isr, tuple(group.lost))


def asked(group: Group, case: Case) -> dict[str, Any]:
    """Format a case for Kafka."""
    running = case.running or Move(case.replicas, (), ())
    question: dict[str, Any] = {
        "replicas": case.replicas,
        "directories": [divmod(directory.int, HIGH) for directory in case.directories],
        "isr": case.isr,
        "elr": case.elr,
        "last_known": case.last_known,
        "removing": running.removing,
        "adding": running.adding,
        "leader": case.leader,
        "recovering": int(case.recovering),
        "leader_epoch": 5,
        "partition_epoch": 7,
        "acceptable": sorted(group.may_lead),
        "version": group.version,
        "min_isr": min(case.min_isr, len(case.replicas)),
        "elr_enabled": group.elr,
        "election": "PREFERRED" if group.preferred else "UNCLEAN" if case.unclean else "ONLINE",
        "target_isr": case.target_isr,
        "lost": sorted(group.lost),
    }
    if case.target is not None:
        question |= {
            "target_replicas": case.target.replicas,
            "target_removing": case.target.removing,
            "target_adding": case.target.adding,
        }
    if case.target_recovering is not None:
        question["target_recovering"] = int(case.target_recovering)
    if case.directory is not None:
        question["directory"] = case.directory
    return question


def cluster_of(group: Group) -> Cluster:
    """Build a cluster with the partitions of a group, each in its own topic."""
    features = {METADATA_VERSION: group.version, ELR_VERSION: int(group.elr)}
    cluster = Cluster(3000, 1, kraft_rules(features))
    for broker in BROKERS:
        registered = Broker(broker, 1, (), directories=(UUID(int=HIGH + broker),))
        apply(cluster, quorum_changes.BrokerRegistered(registered))
    for number, case in enumerate(group.cases):
        topic = cluster.add_topic(f"t{number}", UUID(int=number))
        topic.rows = cluster.columns.add(topic.index, np.zeros(1, dtype=np.int32), pad([case.replicas]))
        cluster.min_isr_topics[topic.name] = case.min_isr
        leader, epoch, version = (np.array([value], dtype=np.int32) for value in (case.leader, 5, 7))
        cluster.columns.set_states(topic.rows, leader, epoch, pad([case.isr]), version, 1, np.array([case.recovering]))
        cluster.columns.set_elr(topic.rows, pad([case.elr]), pad([case.last_known]))
        if group.version >= DIRECTORIES_SINCE:
            numbers = [cluster.directory_number(directory) for directory in case.directories]
            cluster.columns.set_directories(topic.rows, pad([numbers]))
        if case.running is not None:
            cluster.moves[int(topic.rows[0])] = case.running
    return cluster


def changed(cluster: Cluster, group: Group) -> changes.PartitionStates | None:
    """Return the change of all partitions of a group."""
    rows = np.arange(len(group.cases), dtype=np.int32)
    cases = list(enumerate(group.cases))
    ended = {row: case.target for row, case in cases if case.target is not None}
    target = Target(
        pad([case.target_isr for _, case in cases]),
        pad([case.replicas if case.target is None else case.target.replicas for _, case in cases]) if ended else None,
        {row: move if move.adding or move.removing else None for row, move in ended.items()},
        np.array([case.recovering if (new := case.target_recovering) is None else new for _, case in cases]),
        {
            row: {case.directory[0]: UUID(int=2 * HIGH + case.directory[1])}
            for row, case in cases
            if case.directory is not None
        },
    )
    unclean = np.array([case.unclean and not group.preferred for _, case in cases])
    return complete_change(cluster, rows, target, Electing(group.may_lead, unclean, group.preferred, group.lost))


def answered(cluster: Cluster, row: int) -> dict[str, Any]:
    """Format a partition like the reference."""
    columns, move = cluster.columns, cluster.moves.get(row)
    one = np.array([row], dtype=np.int32)
    return {
        "leader": int(columns.leader[row]),
        "leader_epoch": int(columns.leader_epoch[row]),
        "partition_epoch": int(columns.partition_epoch[row]),
        "isr": list(columns.isr_of(row)),
        "elr": list(unpad(columns.elr_in(one)[0])),
        "last_known": list(unpad(columns.last_known_elr_in(one)[0])),
        "replicas": list(columns.replicas_of(row)),
        "removing": [] if move is None else list(move.removing),
        "adding": [] if move is None else list(move.adding),
        "recovering": int(columns.recovering[row]),
        "directories": [list(divmod(directory.int, HIGH)) for directory in cluster.directories_of(row)],
    }


def normalized(answer: dict[str, Any]) -> dict[str, Any]:
    """Return Kafka's answer without two slips of Kafka.

    It leaves removed replicas among the eligible ones, which are then neither electable nor dropped (C20), and notes -1 as the last
    leader of a partition that had none.
    """
    replicas = answer["replicas"]
    return answer | {
        "elr": [broker for broker in answer["elr"] if broker in replicas],
        "last_known": [broker for broker in answer["last_known"] if broker != NO_LEADER],
    }


@pytest.mark.shows("C1", "C2", "C4", "C7", "C9", "C20")
def test_changes_of_partitions_are_kafkas(kraft_judge: Judge) -> None:
    """PartitionChangeBuilder.build, and PartitionRegistration.merge: 3,000 random partitions, 10,000 in a soak."""
    source = random.Random(21)
    groups = [generated(source) for _ in range(GROUPS)]
    answers = iter(kraft_judge.ask("change", [asked(group, case) for group in groups for case in group.cases]))
    written = 0

    for group in groups:
        cluster = cluster_of(group)
        change = changed(cluster, group)
        if change is not None:
            apply(cluster, change)
        rows = set() if change is None else set(change.rows.tolist())
        written += len(rows)
        for row, case in enumerate(group.cases):
            expected = next(answers)
            actual = answered(cluster, row) if row in rows else None
            assert actual == (expected and normalized(expected)), (group.may_lead, group.elr, group.preferred, case)

    assert written > GROUPS * CASES_PER_GROUP / 2, "most cases change something"
