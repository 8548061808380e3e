"""The scenes of the demo. Each checks its result and raises `LabError` when the check fails."""

from __future__ import annotations

import time
from typing import Any

from lab.checks.traffic import Traffic
from lab.demo.stage import LAST_BROKER, SESSION_TIMEOUT_MS, TIMEOUT_S, Stage, example
from lab.demo.timeline import Timeline, duration
from lab.errors import LabError
from lab.processes.waiting import wait_until

TOPIC = "orders"
MOVE = "orders-to-2-3-4"
MANY_PARTITIONS = 200
"""Partitions of a second topic, so that a failover covers more than a handful; three small brokers carry them easily."""


def check(is_met: bool, expectation: str) -> None:
    """Stop the demo when an expectation is not met."""
    if not is_met:
        raise LabError(f"expected: {expectation}")


def declare(stage: Stage, timeline: Timeline) -> None:
    """Apply a Cluster and a Topic, and wait until both are Ready."""
    timeline.scene("1. kubectl apply a Topic")
    cluster = example("cluster.yaml")
    cluster["spec"]["bootstrapServers"] = stage.cluster.bootstrap().split(",")[:3]
    stage.apply(cluster)
    stage.wait_for("clusters", "main")
    began = time.monotonic()
    timeline.note(stage.apply(example("topic.yaml")))
    applied = time.monotonic() - began
    ready = stage.wait_for("topics", TOPIC)
    timeline.fact(
        f"Topic {TOPIC} Ready {duration(ready)} after kubectl returned (kubectl itself took {duration(applied)})"
    )
    check(len(stage.cluster.assignment(TOPIC)) == 6, "six partitions")
    many = example("topic.yaml")
    many["metadata"]["name"] = "many"
    many["spec"]["partitions"] = MANY_PARTITIONS
    stage.apply(many)
    timeline.fact(f"Topic many ({MANY_PARTITIONS} partitions) Ready after {duration(stage.wait_for('topics', 'many'))}")
    timeline.note("kubectl get topics.steward.dev\n" + _table(stage, "topics.steward.dev"))


def move(stage: Stage, timeline: Timeline, traffic: Traffic) -> None:
    """Add a fourth broker, and move the topic onto it under load."""
    timeline.scene("2. A fourth broker; kubectl apply a Reassignment from brokers 1,2,3 to 2,3,4")
    with timeline.timed("broker 4 registered"):
        stage.cluster.start_brokers([LAST_BROKER])
    timeline.note(stage.apply(example("reassignment.yaml")))
    began = time.monotonic()
    seen = ""

    def done() -> bool:
        nonlocal seen
        found = stage.resource("reassignments", MOVE) or {}
        status: dict[str, Any] = found.get("status", {})
        moved = status.get("progress", {}).get("partitions", "nothing")
        progress = f"{status.get('state', 'Pending')}, {moved} moved"
        if progress != seen:
            seen = progress
            timeline.note(f"reassignment {MOVE}: {progress}")
        return stage.condition("reassignments", MOVE).get("status") == "True"

    wait_until(
        done,
        timeout_s=TIMEOUT_S,
        what="the Reassignment to be Ready",
        context=lambda: str(stage.resource("reassignments", MOVE)),
    )
    plan = {entry["partition"]: entry["replicas"] for entry in example("reassignment.yaml")["spec"]["plan"]}
    check(stage.cluster.assignment(TOPIC) == plan, "the replicas of the plan")
    timeline.fact(
        f"Ready with the replicas of the plan after {duration(time.monotonic() - began)}; {traffic.acked} records acked so far"
    )
    timeline.note("kubectl get reassignments.steward.dev\n" + _table(stage, "reassignments.steward.dev"))


def kill_a_leader(stage: Stage, timeline: Timeline, traffic: Traffic) -> None:
    """Kill -9 a leader under load."""
    timeline.scene("3. kill -9 of a leader under load")
    victim = stage.leaders(TOPIC)[0]
    led = sum(leader == victim for topic in (TOPIC, "many") for leader in stage.leaders(topic).values())
    before_s = stage.controller_seconds()
    broker = stage.cluster.broker(victim)
    broker.kill()
    timeline.note(f"broker {victim} killed; it led {led} partitions of {MANY_PARTITIONS + 6}")
    took = wait_until(
        lambda: victim not in {*stage.leaders(TOPIC).values(), *stage.leaders("many").values()},
        timeout_s=TIMEOUT_S,
        what="new leaders",
    )
    traffic.wait_for_acks(50)
    timeline.fact(
        f"all of them have new leaders after {duration(took)} "
        f"(ZooKeeper session {SESSION_TIMEOUT_MS} ms; the controller's part {duration(stage.controller_seconds() - before_s)})"
    )
    with timeline.timed(f"broker {victim} restarted, with all of its replicas in sync"):
        broker.restart()
        stage.cluster.wait_until_in_sync(TOPIC, timeout_s=TIMEOUT_S)


def leave(stage: Stage, timeline: Timeline) -> None:
    """SIGTERM a broker."""
    timeline.scene("4. SIGTERM of a broker: its leaders move before it exits")
    leaving = stage.leaders(TOPIC)[1]
    broker = stage.cluster.broker(leaving)
    began = time.monotonic()
    code = broker.stop()
    took = time.monotonic() - began
    check(leaving not in stage.leaders(TOPIC).values(), "no partition is led by the broker that shut down")
    succeeded = "Controlled shutdown request returned successfully" in broker.process.log_text()
    check(succeeded, "a controlled shutdown in the log of the broker")
    timeline.fact(f"broker {leaving} moved its leaders and exited ({code}) after {duration(took)}")
    broker.start()
    stage.cluster.wait_until_in_sync(TOPIC, timeout_s=TIMEOUT_S)


def lose_the_controller(stage: Stage, timeline: Timeline, traffic: Traffic) -> None:
    """Kill -9 the controller."""
    timeline.scene("5. kill -9 of the controller: a broker takes over until Steward is back")
    first = _epoch(stage)
    stage.controller.kill()
    took = wait_until(
        lambda: stage.cluster.controller_id() in stage.cluster.brokers,
        timeout_s=TIMEOUT_S,
        what="a broker as controller",
    )
    timeline.fact(
        f"broker {stage.cluster.controller_id()} took over after {duration(took)}, epoch {first} -> {_epoch(stage)}"
    )
    traffic.wait_for_acks(50)
    broker_epoch = _epoch(stage)
    with timeline.timed("Steward is the controller again"):
        stage.controller.start()
        wait_until(
            lambda: stage.cluster.controller_id() == stage.controller.controller_id,
            timeout_s=TIMEOUT_S,
            what="Steward as controller",
        )
    check(_epoch(stage) == broker_epoch + 1, "/controller taken back in one transaction")
    check(stage.condition("topics", TOPIC).get("status") == "True", "the Topic stayed Ready")
    timeline.fact(f"/controller taken back in one transaction, epoch {_epoch(stage)}; Topic {TOPIC} is still Ready")


def lose_the_operator(stage: Stage, timeline: Timeline) -> None:
    """Kill -9 the operator, and change a Topic while it is down."""
    timeline.scene("6. kill -9 of the operator: a change made while it is down is applied after its restart")
    stage.operator.kill()
    grown = example("topic.yaml")
    grown["spec"]["partitions"] = 8
    timeline.note(stage.apply(grown))
    with timeline.timed("operator restarted, 8 partitions, Ready"):
        stage.operator.start()
        stage.wait_for("topics", TOPIC)
    check(len(stage.cluster.assignment(TOPIC)) == 8, "eight partitions")


def refuse(stage: Stage, timeline: Timeline) -> None:
    """Apply invalid resources: each is rejected with a reason, and nothing changes."""
    timeline.scene("7. Invalid input")
    fewer = example("topic.yaml")
    timeline.note("fewer partitions: " + _last_line(stage.apply(fewer)))
    wide = example("topic.yaml")
    wide["metadata"]["name"] = "wide"
    wide["spec"]["replicationFactor"] = 5
    stage.apply(wide)
    stage.wait_for("topics", "wide", "False", "NotEnoughBrokers")
    timeline.note(f"five replicas on four brokers: NotEnoughBrokers, {stage.condition('topics', 'wide')['message']}")
    wrong = example("topic.yaml")
    wrong["metadata"]["name"] = "wrong"
    wrong["spec"]["config"] = {"retention.ms": "soon"}
    stage.apply(wrong)
    stage.wait_for("topics", "wrong", "False", "InvalidConfig")
    timeline.note(f"an invalid value: InvalidConfig, {stage.condition('topics', 'wrong')['message']}")
    nowhere = example("reassignment.yaml")
    nowhere["metadata"]["name"] = "nowhere"
    nowhere["spec"]["plan"] = [{"topic": TOPIC, "partition": 0, "replicas": [2, 3, 9]}]
    before = stage.cluster.assignment(TOPIC)
    stage.apply(nowhere)
    stage.wait_for("reassignments", "nowhere", "False")
    found = stage.condition("reassignments", "nowhere")
    timeline.note(f"an unknown broker: {found['reason']}, {found['message']}")
    check(stage.cluster.assignment(TOPIC) == before, "unchanged replicas")


def clean_up(stage: Stage, timeline: Timeline) -> None:
    """Delete the resources."""
    timeline.scene("8. kubectl delete")
    with timeline.timed("topics and resources deleted, with the log of every replica"):
        stage.api.kubectl(
            "delete", "topics.steward.dev,reassignments.steward.dev", "--all", "--timeout=60s", check=True
        )
    deleted = all(not stage.cluster.assignment(topic) for topic in (TOPIC, "many"))
    check(deleted, "no topic in ZooKeeper")


def _epoch(stage: Stage) -> int:
    chroot = stage.cluster.zookeeper_connect.partition("/")[2]
    return int(stage.cluster.zookeeper.read(f"/{chroot}/controller_epoch") or b"-1")


def _table(stage: Stage, kind: str) -> str:
    lines = stage.api.kubectl("get", kind, check=True).stdout.rstrip().splitlines()
    return "\n".join(f"             {line}" for line in lines)


def _last_line(text: str) -> str:
    return text.splitlines()[-1].strip() if text else "(nothing)"
