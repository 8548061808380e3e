"""The operator killed after its effects, in the soak at every call: the end is always the same (O3).

Each story runs once without a kill, which counts its calls; then once for each call, with the process killed there and a new one
started. What users of Kubernetes and of Kafka see in the end is compared, and nothing is written any more (O1).
"""

from __future__ import annotations

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import NO_LEADER, Failure
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.security import Login, Security
from reconciler.names import Key
from tests.kafka_operator.crash_stories import Story, ends_alike
from tests.kafka_operator.makers import raw_cluster, raw_election, raw_plan, raw_reassignment, raw_topic
from tests.kafka_operator.world import World

pytestmark = pytest.mark.slow

ORDERS = Key(kinds.TOPIC, "shop", "orders")
MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
PLAN = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2])


async def create(world: World) -> None:
    """A Topic is applied."""
    world.kube.apply(raw_topic(config={"retention.ms": "1"}))


async def change(world: World) -> None:
    """A Topic's partitions grow, one setting changes, one comes, one goes."""
    world.kube.apply(raw_topic(config={"retention.ms": "1", "cleanup.policy": "compact"}))
    await world.run(2)
    world.kube.apply(raw_topic(partitions=8, config={"retention.ms": "2", "min.insync.replicas": "2"}))


async def change_of_mind(world: World) -> None:
    """A setting comes and goes again before anybody had time; nothing of it may stay behind."""
    world.kube.apply(raw_topic())
    await world.run(1)
    world.kube.apply(raw_topic(config={"retention.ms": "2"}))
    await world.run(0.2)
    world.kube.apply(raw_topic())


async def delete(world: World) -> None:
    """A Topic is applied and deleted."""
    world.kube.apply(raw_topic())
    await world.run(1)
    world.kube.delete(ORDERS)


async def delete_at_once(world: World) -> None:
    """A Topic is deleted while it is being created."""
    world.kube.apply(raw_topic())
    await world.run(0.08)
    world.kube.delete(ORDERS)


async def conflict(world: World) -> None:
    """Two Topics for one Kafka topic; the winner goes."""
    world.kube.apply(raw_topic())
    await world.run(2)
    world.kube.apply(raw_topic("second", topicName="orders", partitions=2))
    await world.run(2)
    world.kube.delete(ORDERS)


async def refused(world: World) -> None:
    """A Topic with a setting that Kafka refuses."""
    world.kube.apply(raw_topic(config={"no.such": "1"}))


async def reassign(world: World) -> None:
    """A plan is carried out."""
    world.kafka.add("orders", [(1, 2, 3)] * 2)
    world.kube.apply(raw_reassignment(plan=PLAN))


async def cancel(world: World) -> None:
    """A plan is cancelled on the way."""
    world.kafka.move_s = 1000
    world.kafka.add("orders", [(1, 2, 3)] * 2)
    world.kube.apply(raw_reassignment(plan=PLAN))
    await world.run(4)
    world.kube.apply(raw_reassignment(plan=PLAN, action="Cancel"))


async def delete_running(world: World) -> None:
    """A plan is deleted on the way."""
    world.kafka.move_s = 1000
    world.kafka.add("orders", [(1, 2, 3)] * 2)
    world.kube.apply(raw_reassignment(plan=PLAN))
    await world.run(4)
    world.kube.delete(MOVE)


async def whole_namespace(world: World) -> None:
    """Everything is deleted at once."""
    world.kube.apply(raw_topic())
    world.kube.apply(raw_topic("kept", deletionPolicy="Retain"))
    await world.run(2)
    for key in list(world.kube.objects):
        world.kube.delete(key)


async def rotated_login(world: World) -> None:
    """A Cluster's Secret comes late, its password changes in Kafka and then in the Secret, and a Topic changes in the meantime."""
    authentication = {"type": "ScramSHA512", "username": "steward", "secretRef": {"name": "user"}}
    world.kafka.security = Security(login=Login("SCRAM-SHA-512", "steward", "old"))
    world.kube.apply(raw_cluster(authentication=authentication))
    world.kube.apply(raw_topic())
    await world.run(1)
    world.kube.secrets["shop", "user"] = {"password": b"old"}
    await world.run(40)
    world.kafka.security = Security(login=Login("SCRAM-SHA-512", "steward", "new"))
    world.kube.apply(raw_topic(partitions=8))
    await world.run(1)
    world.kube.secrets["shop", "user"] = {"password": b"new"}


async def elect_preferred(world: World) -> None:
    """Leaders return to where they are preferred; one of them cannot at first, one is refused for good."""
    world.kafka.add("orders", [(1, 2, 3), (2, 3, 1), (3, 1, 2), (4, 1, 2), (1, 3, 2)])
    world.kafka.leaders |= {Partition("orders", index): 2 for index in (0, 2, 3, 4)}
    world.kafka.broker_ids = (1, 2, 3)
    world.kafka.refuse_partitions[Partition("orders", 4)] = Failure(17, "INVALID_TOPIC_EXCEPTION", "Not this one.")
    world.kube.apply(raw_election(topics=["orders"]))
    await world.run(3)
    world.kafka.broker_ids = (1, 2, 3, 4)


async def elect_unclean(world: World) -> None:
    """Two partitions have no leader; one of them has no replica that is alive either."""
    world.kafka.add("orders", [(1, 2), (4,), (2, 1)])
    world.kafka.broker_ids = (1, 2, 3)
    world.kafka.leaders |= {Partition("orders", 0): NO_LEADER, Partition("orders", 1): NO_LEADER}
    world.kube.apply(raw_election(type="Unclean", acceptDataLoss=True, all=True))
    await world.run(40)  # a new process is as patient as the one before it


async def delete_election(world: World) -> None:
    """An Election is deleted at once; nothing holds it."""
    world.kafka.add("orders", [(1, 2)])
    world.kafka.leaders[Partition("orders", 0)] = 2
    key = world.kube.apply(raw_election(topics=["orders", "not-there"]))
    await world.run(5)
    world.kube.delete(key)


STORIES: tuple[Story, ...] = (
    create,
    change,
    change_of_mind,
    delete,
    delete_at_once,
    conflict,
    refused,
    reassign,
    cancel,
    delete_running,
    whole_namespace,
    rotated_login,
    elect_preferred,
    elect_unclean,
    delete_election,
)


@pytest.mark.shows("O1", "O3")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_killed_at_any_call_the_end_is_the_same(story: Story) -> None:
    """O1, O3: all kinds of effects; every call in the soak."""
    ends_alike(story)
