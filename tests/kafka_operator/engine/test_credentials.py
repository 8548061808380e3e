"""Credentials of Clusters: rotated while the operator runs, reported when they are wrong, never shown."""

from __future__ import annotations

import logging

import pytest

from kafka_operator import kinds
from kafka_operator.decide.clusters.cluster import POLL_INTERVAL_S
from kafka_operator.resources.security import Login, Security
from reconciler.names import Key
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time, run_virtually

MAIN = Key(kinds.CLUSTER, "shop", "main")
ORDERS = Key(kinds.TOPIC, "shop", "orders")
AUTHENTICATION = {"type": "Plain", "secretRef": {"name": "user"}}
OLD, NEW, GUESS = "old-hunter2", "new-hunter2", "guessed-hunter2"


def login(password: str) -> Security:
    """The operator's user."""
    return Security(tls=True, login=Login("PLAIN", "steward", password))


def secret(password: str) -> dict[str, bytes]:
    """What is kept of it."""
    return {"username": b"steward", "password": password.encode()}


def guarded(world: World) -> None:
    """Have a cluster that asks for a login, and the Secret for it."""
    world.kafka.security = login(OLD)
    world.kube.secrets["shop", "user"] = secret(OLD)
    world.kube.apply(raw_cluster(tls={}, authentication=AUTHENTICATION))


@in_virtual_time
async def test_a_rotated_secret_is_used_at_the_next_poll_without_a_restart() -> None:
    """Rotated without a restart; docs/clusters.md names the time."""
    async with running(cluster=False) as world:
        guarded(world)
        await world.until(lambda: world.kube.ready(MAIN)[0] == "True")
        world.kafka.security = (
            None  # old and new credentials are accepted while it is rotated, as Kafka does with open connections
        )
        world.kube.secrets["shop", "user"] = secret(NEW)

        await world.until(lambda: world.connected[-1] == login(NEW), POLL_INTERVAL_S + 1)
        world.kube.writes.clear()
        await world.run(60)
        assert len(world.connected) == 2
        assert world.kube.writes == []


@in_virtual_time
async def test_a_wrong_password_is_reported_and_the_right_one_is_used() -> None:
    """The Cluster and its Topics report AuthenticationFailed once, and become Ready again automatically."""
    async with running(cluster=False) as world:
        guarded(world)
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")
        world.kafka.security = login(NEW)
        await world.until(lambda: world.kube.ready(MAIN)[:2] == ("Unknown", "AuthenticationFailed"))
        world.kube.writes.clear()
        await world.run(120)
        assert len(world.kube.writes) <= 1  # the Topic's, at the resync

        world.kube.secrets["shop", "user"] = secret(NEW)
        await world.until(lambda: world.kube.ready(MAIN)[0] == "True", 15)
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True", 5)


@pytest.mark.parametrize("wrong", [secret(GUESS), {"password": GUESS.encode()}, {"username": b"\xff" + GUESS.encode()}])
def test_no_secret_is_ever_shown(wrong: dict[str, bytes], caplog: pytest.LogCaptureFixture) -> None:
    """Never a secret in a log, a status, an event or an exception's text."""
    caplog.set_level(logging.DEBUG)

    async def story() -> str:
        async with running(cluster=False) as world:
            guarded(world)
            world.kube.apply(raw_topic())
            await world.run(20)
            world.kube.secrets["shop", "user"] = wrong
            await world.run(60)
            world.kube.secrets["shop", "user"] = secret(OLD)
            await world.run(60)
            return repr((world.kube.objects, world.kube.events, world.connected, world.gate.calls))

    shown = run_virtually(story()) + caplog.text
    assert "AuthenticationFailed" in shown or "BadSecret" in shown
    assert [word for word in (OLD, GUESS) if word in shown] == []
