"""Elections, the numbers of a Cluster and `steward import`, on a real API server and a stock Kafka cluster of version 3.9."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lab.processes.waiting import wait_until
from reconciler.names import STARTED
from tests.kafka_operator.live import PATIENCE_S, ROOT, Namespace
from tests.kafka_operator.makers import raw_election, raw_plan, raw_reassignment
from tests.kafka_operator.stock import Brokers, Stock
from tests.twins.kstatus import kstatus

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka]

CLUSTER_METRICS_S = 60.0
"""All partitions are counted every half minute."""


def leaders(kafka: Stock, topic: str) -> list[int]:
    """Who leads each partition, as brokers show it."""
    partitions = kafka.admin.list_topics(timeout=PATIENCE_S).topics[topic].partitions
    return [partitions[index].leader for index in sorted(partitions)]


def until_ended(shop: Namespace, name: str) -> dict[str, object]:
    """Wait until an Election is over; return its status."""
    wait_until(
        lambda: shop.status("Election", name).get("state") in {"Completed", "PartlyFailed", "Failed"},
        timeout_s=PATIENCE_S,
        what=f"{name} is over",
        context=lambda: str(shop.status("Election", name)),
    )
    return shop.status("Election", name)


@pytest.mark.shows("F35")
def test_leaders_return_to_a_broker_that_is_back(shop: Namespace, kafka: Stock, brokers: Brokers) -> None:
    """F35: by ElectLeaders, on a stock controller. Partitions that need no election are reported, too."""
    kafka.create("elect-preferred", [[2, 1], [1, 2], [2, 3]])
    brokers.broker(2).restart()
    wait_until(
        lambda: 2 not in leaders(kafka, "elect-preferred"), timeout_s=PATIENCE_S, what="broker 2 leads no partition"
    )
    wait_until(
        lambda: kafka.in_sync("elect-preferred") == [[1, 2], [1, 2], [2, 3]], timeout_s=PATIENCE_S, what="all in sync"
    )

    shop.apply(raw_election("back", topics=["elect-preferred", "not-there"]))
    status = until_ended(shop, "back")

    assert status["state"] == "PartlyFailed"
    assert status["counts"] == {"selected": 4, "needed": 3, "elected": 2, "notNeeded": 1, "failed": 1}
    wait_until(
        lambda: leaders(kafka, "elect-preferred") == [2, 1, 2], timeout_s=PATIENCE_S, what="broker 2 leads again"
    )
    shop.apply(raw_election("again", brokers=[2]))
    assert until_ended(shop, "again")["state"] == "Completed"


@pytest.mark.shows("F35", "E9")
def test_a_partition_without_a_leader_gets_one_where_loss_is_accepted(
    shop: Namespace, kafka: Stock, brokers: Brokers
) -> None:
    """Unclean; and the Cluster reports the partition before and after."""
    kafka.create("elect-unclean", [[2, 3]])
    brokers.broker(3).kill()
    wait_until(lambda: kafka.in_sync("elect-unclean") == [[2]], timeout_s=PATIENCE_S, what="2 is alone")
    brokers.broker(2).kill()
    brokers.broker(3).start()
    wait_until(lambda: leaders(kafka, "elect-unclean") == [-1], timeout_s=PATIENCE_S, what="no broker leads")
    shop.apply(raw_election("preferred", partitions=[{"topic": "elect-unclean", "partition": 0}]))
    wait_until(
        lambda: int(shop.status("Cluster", "main").get("offline", 0)) > 0,
        timeout_s=CLUSTER_METRICS_S,
        what="the report of the Cluster",
    )
    failed = until_ended(shop, "preferred")
    assert "PREFERRED_LEADER_NOT_AVAILABLE" in str(failed["results"])

    shop.apply(raw_election("unclean", type="Unclean", acceptDataLoss=True, topics=["elect-unclean"]))
    status = until_ended(shop, "unclean")

    expected = [{"topic": "elect-unclean", "partition": 0, "result": "ELECTED", "leader": 3}]
    assert status["results"] == expected
    brokers.broker(2).start()
    wait_until(
        lambda: shop.status("Cluster", "main").get("underReplicated") == 0,
        timeout_s=CLUSTER_METRICS_S,
        what="all is well again",
    )


@pytest.mark.shows("F27", "E8")
def test_imported_topics_are_accepted_and_ready_at_once(shop: Namespace, kafka: Stock, tmp_path: Path) -> None:
    """Features (e) 8: the command, kubectl apply, Ready; nothing changes in Kafka."""
    kafka.create("Import_Me", [[1, 2], [2, 3]])
    kafka.set_config("Import_Me", "retention.ms", "12345")
    kafka.create("import-too", [[3, 1]])
    command = [sys.executable, "-m", "steward", "import", f"--bootstrap-server={kafka.bootstrap}", "--cluster=main"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"}
    chosen = ["--include=Import_*", "--include=import-*", f"--output={tmp_path}"]
    subprocess.run([*command, *chosen], env=environment, check=True, timeout=PATIENCE_S, capture_output=True)

    shop.kubectl("apply", "-f", str(tmp_path))
    names = [yaml.safe_load(path.read_text(encoding="utf-8"))["metadata"]["name"] for path in tmp_path.iterdir()]
    assert len(names) == 2
    for name in names:
        shop.until("Topic", name, "True", "AsDeclared")
    assert (kafka.replicas("Import_Me"), kafka.config("Import_Me")) == ([[1, 2], [2, 3]], {"retention.ms": "12345"})
    for name in names:
        shop.delete("Topic", name)
        shop.until_gone("Topic", name)
    assert kafka.exists("Import_Me")


KEPT = ("annotations", "finalizers", "labels", "name")
"""Metadata that a backup restores."""


def restored(shop: Namespace, kind: str, name: str) -> None:
    """Delete a resource, and create it again from a copy without its status, as Velero does by default."""
    found = shop.get(kind, name)
    assert found is not None
    shop.delete(kind, name)
    shop.until_gone(kind, name)
    kept = {key: value for key, value in found["metadata"].items() if key in KEPT}
    shop.apply({"apiVersion": found["apiVersion"], "kind": kind, "metadata": kept, "spec": found["spec"]})


@pytest.mark.shows("F42")
def test_resources_restored_without_status_are_not_run_again(shop: Namespace, kafka: Stock) -> None:
    """A Reassignment and an Election: Stalled with what to do, until a user removes the annotation. The page on backups quotes it."""
    kafka.create("restored", [[1, 2]])
    shop.apply(raw_reassignment("move", plan=raw_plan("restored", p0=[2, 3])))
    shop.until("Reassignment", "move", "True", "Completed")
    shop.apply(raw_election("elect", topics=["restored"]))
    assert until_ended(shop, "elect")["state"] == "Completed"
    shop.kubectl("wait", "--for=condition=Complete", "--timeout=60s", "reassignments.steward.dev/move")
    shop.kubectl("wait", "--for=condition=Complete", "--timeout=60s", "elections.steward.dev/elect")
    for kind, name in (("Reassignment", "move"), ("Election", "elect")):
        wait_until(
            lambda kind=kind, name=name: STARTED in (shop.get(kind, name) or {})["metadata"].get("annotations", {}),
            timeout_s=PATIENCE_S,
            what=f"{name} is marked",
        )
        restored(shop, kind, name)
        shop.until(kind, name, "False", "RestoredWithoutStatus")
        found = shop.get(kind, name)
        assert found is not None
        assert kstatus(found) == "Failed"

    command = f"{STARTED}-"
    assert command in shop.ready("Reassignment", "move")[2]
    shop.kubectl("annotate", "reassignments.steward.dev", "move", command)
    shop.until("Reassignment", "move", "True", "Completed")
    shop.kubectl("annotate", "elections.steward.dev", "elect", command)
    assert until_ended(shop, "elect")["state"] == "Completed"
