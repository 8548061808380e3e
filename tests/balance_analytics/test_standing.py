"""What becomes of a proposal beside those that are there: one that waits at most, and none that anybody has approved is touched."""

from __future__ import annotations

from typing import Any

import pytest

from balance_analytics import proposing
from balance_analytics.moves.manifests import LABEL, PROPOSER, manifests, proposal_name
from balance_analytics.moves.standing import Create, Keep, LeftBehind, Seen, UnderWay, decide_standing, left_behind
from balance_analytics.proposing import AWAITS, MAX_LEFT_BEHIND, ProposingError
from kafka_operator.kube.port import ConflictError, KubeError, Listing, NotFoundError, RefusedError, UnavailableError
from kafka_operator.names import Key, Kind
from tests.balance_analytics.test_moves import proposal

NEW = "main-balance-new"
WAITING = {"clusterRef": {"name": "main"}, "approval": "Required"}


def there(name: str = "main-balance-old", state: str | None = "Proposed", **changes: Any) -> dict[str, Any]:
    """A proposal of ours on the API server."""
    labels = {LABEL: changes.pop("by", PROPOSER)}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels}
    metadata |= changes.pop("metadata", {})
    return {"metadata": metadata, "spec": WAITING | changes, "status": {} if state is None else {"state": state}}


OLD = Seen("main-balance-old", "uid-main-balance-old", "7")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], Create()),
        ([there()], Create((OLD,))),
        ([there(state=None)], Create((OLD,))),
        ([there(NEW)], Keep(f"uid-{NEW}", "Proposed")),
        ([there(NEW, "RolledBack"), there()], Keep(f"uid-{NEW}", "RolledBack")),
        ([there(approvedDigest="sha256:0")], UnderWay("main-balance-old")),
        ([there(approval="Automatic", state=None)], UnderWay("main-balance-old")),
        ([there(state="Running")], UnderWay("main-balance-old")),
        ([there(state="RollingBack", approvedDigest="sha256:0")], UnderWay("main-balance-old")),
        ([there(state="Completed", approvedDigest="sha256:0")], Create()),
        ([there(state="Cancelled")], Create()),
        ([there(by="somebody")], Create()),
        ([there(clusterRef={"name": "other"})], Create()),
        ([there(metadata={"deletionTimestamp": "2026-03-02T10:00:00Z"})], Create()),
        ([there(), there("main-balance-b", "Running")], UnderWay("main-balance-b")),
    ],
)
def test_a_newer_proposal_takes_the_place_of_one_that_waits(found: list[dict[str, Any]], expected: object) -> None:
    """And of no other."""
    assert expected == decide_standing(found, NEW, "main")


def test_the_name_follows_from_the_moves_and_where_they_begin() -> None:
    """A second run over the same study proposes nothing a second time."""
    one, again, other = (proposal_name(proposal(count), "main", "id") for count in (60, 60, 40))

    assert one == again != other
    assert one.startswith("main-balance-")
    assert len(proposal_name(proposal(), "x" * 253)) < 253 - len("-figures")


def config_map(name: str) -> dict[str, Any]:
    """One that has no owner yet."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "3"}}


def test_what_a_killed_run_left_behind_goes_unless_its_reassignment_is_there() -> None:
    """Killed before the Reassignment was made, or before its ConfigMaps were given to it; none of another Cluster's is touched."""
    old, there_is = "main-balance-0123456789", "main-balance-abcdef0123"
    names = (f"{old}-plan-0", f"{old}-figures", f"{there_is}-plan-12", "main-b-balance-0123456789-figures", f"{old}-x")

    found = left_behind([config_map(name) for name in names], "main", {there_is: "uid-there", "other": "uid-other"})

    assert (
        LeftBehind(Seen(names[0], f"uid-{names[0]}", "3"), None),
        LeftBehind(Seen(names[1], f"uid-{names[1]}", "3"), None),
        LeftBehind(Seen(names[2], f"uid-{names[2]}", "3"), (there_is, "uid-there")),
    ) == found


class Failing:
    """A Kubernetes API on which one call fails."""

    def __init__(self, verb: str, error: KubeError) -> None:
        self._verb, self._error = verb, error
        self.left = [config_map("main-balance-0123456789-figures")]

    def _maybe(self, verb: str) -> None:
        if verb == self._verb:
            raise self._error

    async def list_objects(self, kind: Kind, namespace: str | None) -> Listing:
        assert (Kind.REASSIGNMENT, "kafka") == (kind, namespace)
        self._maybe("list")
        return Listing((there(),), "9")

    async def create_object(self, key: Key, content: Any) -> Any:
        assert content["metadata"]["name"] == key.name
        self._maybe("create reassignments")
        return {"metadata": {"uid": "uid-new"}}

    async def create_config_map(self, namespace: str, content: Any) -> None:
        assert content["metadata"]["namespace"] == namespace
        assert AWAITS in content["metadata"]["labels"]
        self._maybe("create configmaps")

    async def list_config_maps(self, namespace: str, selector: str, limit: int) -> list[dict[str, Any]]:
        assert ("kafka", f"{LABEL}={PROPOSER},{AWAITS}", MAX_LEFT_BEHIND) == (namespace, selector, limit)
        self._maybe("list configmaps")
        return self.left

    async def delete_object(self, key: Key, uid: str, resource_version: str) -> None:
        assert (Key(Kind.REASSIGNMENT, "kafka", OLD.name), OLD.uid, "7") == (key, uid, resource_version)
        self._maybe("delete reassignments")

    async def delete_config_map(self, namespace: str, name: str, uid: str, resource_version: str) -> None:
        assert [config_map(name)] == self.left
        assert ("kafka", f"uid-{name}", "3") == (namespace, uid, resource_version)
        self.left = []
        self._maybe("delete configmaps")

    async def patch_config_map(self, namespace: str, name: str, patch: Any) -> None:
        assert ("kafka", f"{NEW}-figures") == (namespace, name)
        assert "uid-new" == patch["metadata"]["ownerReferences"][0]["uid"]
        self._maybe("patch configmaps")


@pytest.mark.parametrize(
    ("verb", "error", "words"),
    [
        (
            "list",
            RefusedError("403"),
            "refuses to list reassignments in namespace kafka: allow the driver's service account",
        ),
        ("list", NotFoundError("404"), "to list reassignments in namespace kafka: install Steward's kinds"),
        ("list", UnavailableError("x"), "does not answer when asked to list reassignments in namespace kafka"),
        ("delete reassignments", RefusedError("403"), "refuses to delete reassignments in namespace kafka"),
        ("create configmaps", RefusedError("403"), "refuses to create configmaps in namespace kafka"),
        ("create reassignments", RefusedError("403"), "refuses to create reassignments in namespace kafka"),
        ("patch configmaps", RefusedError("403"), "refuses to patch configmaps in namespace kafka"),
        ("list configmaps", RefusedError("403"), "refuses to list configmaps in namespace kafka"),
        ("delete configmaps", RefusedError("403"), "refuses to delete configmaps in namespace kafka"),
        ("delete reassignments", ConflictError("409"), "changed 5 times meanwhile: run this again"),
    ],
)
async def test_what_fails_is_told_by_verb_and_resource(verb: str, error: KubeError, words: str) -> None:
    """Required: bad input says what and what to do."""
    objects = manifests(proposal(), name=NEW, namespace="kafka", cluster="main")
    with pytest.raises(ProposingError, match=words):
        await proposing._propose(Failing(verb, error), objects, "main", "kafka")  # type: ignore[arg-type]


async def test_it_is_said_what_was_replaced() -> None:
    """And nothing else."""
    objects = manifests(proposal(), name=NEW, namespace="kafka", cluster="main")
    api = Failing("", KubeError())
    done = await proposing._propose(api, objects, "main", "kafka")  # type: ignore[arg-type]

    assert [] == api.left
    assert (NEW, f"Reassignment {NEW} is proposed, in the place of main-balance-old") == (done.name, done.told)
