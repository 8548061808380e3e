"""Writes to the Reassignments that Topics own."""

from __future__ import annotations

import pytest

from kafka_operator import kinds
from kafka_operator.decide.steps import CancelReassignment, CreateReassignment
from kafka_operator.engine.owned_reassignments import OwnedReassignments
from reconciler.decide.steps import RETRY_LATER_S, Retry, Wait
from reconciler.kube.port import KubeError, RefusedError, UnavailableError
from reconciler.names import Key
from tests.kafka_operator.makers import topic
from tests.reconciler.fake_kube import FakeKube
from tests.reconciler.gate import Gate

CREATE = CreateReassignment("orders-rf3-2", {"clusterRef": {"name": "main"}})
MADE = Key(kinds.REASSIGNMENT, "shop", "orders-rf3-2")


async def test_a_reassignment_is_created_once_and_owned() -> None:
    """A second one of the name is the first, created by a process that died after it."""
    kube = FakeKube(Gate())
    owned = OwnedReassignments(kube)

    assert isinstance(await owned.carry_out(topic(), CREATE), Wait)
    assert isinstance(await owned.carry_out(topic(), CREATE), Retry)

    (owner,) = kube.objects[MADE]["metadata"]["ownerReferences"]
    assert (
        owner["kind"],
        owner["name"],
        owner["uid"],
        owner["controller"],
        owner["blockOwnerDeletion"],
    ) == ("Topic", "orders", "uid-1", True, False)
    assert len(kube.objects) == 1


async def test_a_reassignment_is_cancelled_as_it_was_seen() -> None:
    """Not when it has changed since, or has gone; the Topic itself is not touched by either."""
    kube = FakeKube(Gate())
    owned = OwnedReassignments(kube)
    await owned.carry_out(topic(), CREATE)
    version = kube.objects[MADE]["metadata"]["resourceVersion"]

    assert isinstance(await owned.carry_out(topic(), CancelReassignment(MADE.name, "1")), Retry)
    assert "action" not in kube.objects[MADE]["spec"]
    assert isinstance(await owned.carry_out(topic(), CancelReassignment(MADE.name, version)), Wait)
    assert kube.objects[MADE]["spec"]["action"] == "Cancel"
    assert isinstance(await owned.carry_out(topic(), CancelReassignment("gone", "1")), Retry)


@pytest.mark.parametrize(("error", "later"), [(UnavailableError("503"), False), (RefusedError("403"), True)])
async def test_what_the_api_server_does_not_take_is_tried_again(error: KubeError, later: bool) -> None:
    """A refusal is not retried so soon: a user has to act."""
    kube = FakeKube(Gate())
    kube.failures.append(error)

    outcome = await OwnedReassignments(kube).carry_out(topic(), CREATE)

    assert isinstance(outcome, Retry)
    assert later is (outcome.first_s == RETRY_LATER_S)
