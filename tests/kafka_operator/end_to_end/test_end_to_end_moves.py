"""Reassignments whole, on a real API server and a stock Kafka cluster: throttles, goals, plans in ConfigMaps, the way back."""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import ConfigResource, ResourceType

from kafka_operator.decide.plans.plan_document import digest_of
from lab.processes.waiting import wait_until
from tests.kafka_operator.live import PATIENCE_S, Namespace
from tests.kafka_operator.makers import assignments, raw_cluster, raw_plan, raw_reassignment
from tests.kafka_operator.plans import document
from tests.kafka_operator.stock import Stock

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka]

SLOW, CHANGED = {"bytesPerSecond": 20_000}, {"bytesPerSecond": 30_000}
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def rates(kafka: Stock, broker_id: int) -> dict[str, str]:
    """The rates that are set on a broker itself."""
    resource = ConfigResource(ResourceType.BROKER, str(broker_id))
    found = kafka.admin.describe_configs([resource])[resource].result(PATIENCE_S)
    return {name: entry.value for name, entry in found.items() if name in RATES and entry.source == 2}


def throttles(kafka: Stock, topic: str) -> dict[str, Any]:
    """All throttles that are set for a topic or on a broker."""
    brokers = {str(broker): found for broker in (1, 2, 3) if (found := rates(kafka, broker))}
    return brokers | {name: value for name, value in kafka.config(topic).items() if "throttled" in name}


def until_state(shop: Namespace, state: str, name: str = "move") -> dict[str, Any]:
    """Wait for a state; return the status."""
    wait_until(
        lambda: shop.status("Reassignment", name).get("state") == state,
        timeout_s=PATIENCE_S,
        what=f"{name} is {state}",
        context=lambda: f"it is {shop.status('Reassignment', name)}",
    )
    return shop.status("Reassignment", name)


@pytest.fixture
def writer(kafka: Stock) -> Iterator[Any]:
    """Writes to a topic all the time until the end of the test: `writer(topic)`."""
    end = threading.Event()
    threads: list[threading.Thread] = []

    def write(topic: str) -> None:
        while not end.is_set():
            kafka.fill(topic, 20)
            end.wait(0.05)

    def start(topic: str) -> None:
        threads.append(threading.Thread(target=write, args=(topic,), daemon=True))
        threads[-1].start()

    yield start
    end.set()
    for thread in threads:
        thread.join(PATIENCE_S)


@pytest.mark.shows("F15", "F17", "F18", "F20", "E2")
def test_a_throttled_move_is_cancelled_and_one_without_goes_there_and_back(shop: Namespace, kafka: Stock) -> None:
    """The throttle is in Kafka while it moves, follows an edit, and is gone after the cancel; bytes and time left; a rollback after the end."""
    kafka.create("e2e-throttled", [[1, 2], [2, 1]])
    kafka.fill("e2e-throttled", 300)
    plan = raw_plan("e2e-throttled", p0=[2, 3], p1=[3, 1])
    shop.apply(raw_reassignment("slow", plan=plan, throttle=SLOW))
    shop.until("Reassignment", "slow", "False", "Running")
    assert dict.fromkeys(RATES, "20000") == rates(kafka, 3)
    assert kafka.config("e2e-throttled")["follower.replication.throttled.replicas"] == "0:3,1:3"
    progress = shop.status("Reassignment", "slow")["progress"]
    assert progress["bytesTotal"] > 2_000_000
    shop.apply(raw_reassignment("slow", plan=plan, throttle=CHANGED))
    wait_until(
        lambda: rates(kafka, 3) == dict.fromkeys(RATES, "30000"), timeout_s=PATIENCE_S, what="the throttle is changed"
    )
    wait_until(
        lambda: shop.status("Reassignment", "slow")["progress"].get("etaSeconds", 0) > 0,
        timeout_s=PATIENCE_S,
        what="the time left is shown",
    )
    shop.apply(raw_reassignment("slow", plan=plan, throttle=CHANGED, action="Cancel"))
    until_state(shop, "Cancelled", "slow")
    assert throttles(kafka, "e2e-throttled") == {}

    shop.apply(raw_reassignment(plan=plan, throttle={"bytesPerSecond": 500_000_000}))
    done = until_state(shop, "Completed")
    assert done["progress"]["bytesMoved"] == done["progress"]["bytesTotal"] > 2_000_000
    shop.apply(raw_reassignment(plan=plan, throttle={"bytesPerSecond": 500_000_000}, action="Rollback"))
    until_state(shop, "RolledBack")
    shop.until("Reassignment", "move", "True", "RolledBack")

    base = [item["replicas"] for item in done["base"]]
    wait_until(lambda: kafka.replicas("e2e-throttled") == base, timeout_s=PATIENCE_S, what="they are back")
    assert throttles(kafka, "e2e-throttled") == {}


@pytest.mark.shows("F16", "E4")
def test_a_throttled_move_that_is_killed_and_deleted_leaves_no_throttle(
    shop: Namespace, kafka: Stock, operator: Any
) -> None:
    """Kill -9 while the throttle is set; deleted while no operator runs; throttles of other clients stay."""
    kafka.create("e2e-killed", [[1, 2]])
    kafka.fill("e2e-killed", 300)
    kafka.set_config("e2e-killed", "leader.replication.throttled.replicas", "5:1")
    before = throttles(kafka, "e2e-killed")
    shop.apply(raw_reassignment(plan=raw_plan("e2e-killed", p0=[2, 3]), throttle=SLOW))
    shop.until("Reassignment", "move", "False", "Running")
    assert before != throttles(kafka, "e2e-killed")
    operator.kill()
    shop.delete("Reassignment", "move")
    operator.start()

    shop.until_gone("Reassignment", "move")

    assert before == throttles(kafka, "e2e-killed")
    wait_until(lambda: {1, 2} == set(kafka.replicas("e2e-killed")[0]), timeout_s=PATIENCE_S, what="it is as before")


@pytest.mark.shows("F15")
def test_a_throttle_below_the_traffic_is_reported_before_any_move(shop: Namespace, kafka: Stock, writer: Any) -> None:
    """The traffic is measured on the real logs and reported. With a higher throttle the move completes during the traffic."""
    kafka.create("e2e-busy", [[1, 2]])
    writer("e2e-busy")
    plan = raw_plan("e2e-busy", p0=[2, 3])
    shop.apply(raw_reassignment(plan=plan, throttle={"bytesPerSecond": 1000}))
    shop.until("Reassignment", "move", "False", "ThrottleTooLow")
    assert "bytes per second on broker" in shop.ready("Reassignment", "move")[2]
    assert kafka.replicas("e2e-busy") == [[1, 2]]
    assert throttles(kafka, "e2e-busy") == {}

    adaptive = {"adaptive": {"minBytesPerSecond": 1000, "maxBytesPerSecond": 500_000_000}}
    shop.apply(raw_reassignment(plan=plan, throttle=adaptive))

    until_state(shop, "Completed")
    assert throttles(kafka, "e2e-busy") == {}


@pytest.mark.shows("E16")
def test_a_plan_outside_its_windows_waits_and_moves_once_one_is_open(shop: Namespace, kafka: Stock) -> None:
    """A window that cannot be read moves nothing either; windows can be changed."""
    kafka.create("e2e-windows", [[1, 2]])
    plan = raw_plan("e2e-windows", p0=[2, 3])
    never = {"schedule": "0 0 30 2 *", "duration": "1h"}
    later = {"schedule": f"0 {(datetime.now(UTC).hour + 6) % 24} * * *", "duration": "1h"}
    always = {"schedule": "* * * * *", "duration": "1h", "timeZone": "Europe/Berlin"}
    shop.apply(raw_reassignment(plan=plan, windows=[never]))
    shop.until("Reassignment", "move", "False", "InvalidWindow")
    shop.apply(raw_reassignment(plan=plan, windows=[later]))
    shop.until("Reassignment", "move", "False", "OutsideWindow")
    assert kafka.replicas("e2e-windows") == [[1, 2]]
    assert shop.status("Reassignment", "move")["nextWindowTime"] in shop.ready("Reassignment", "move")[2]

    shop.apply(raw_reassignment(plan=plan, windows=[later, always]))

    until_state(shop, "Completed")
    shop.until_events(
        "move",
        ("Warning", "InvalidWindow"),
        ("Normal", "OutsideWindow"),
        ("Normal", "Running"),
        ("Normal", "Completed"),
    )


@pytest.fixture
def prometheus() -> Iterator[list[str]]:
    """A server that answers each query with one value, the first of the list; the second is its address."""
    answer = ["0.02"]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            series = [{"metric": {}, "value": [1, answer[0]]}]
            body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}}).encode()
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        answer.append(f"http://127.0.0.1:{server.server_port}")
        yield answer
        server.shutdown()


@pytest.mark.shows("E17")
def test_a_query_over_its_threshold_takes_a_running_move_back(
    shop: Namespace, kafka: Stock, prometheus: list[str]
) -> None:
    """Pause at the first reading, rollback at the second; Kafka has its previous replicas and no throttle."""
    kafka.create("e2e-guard", [[1, 2]])
    kafka.fill("e2e-guard", 300)
    shop.apply(raw_cluster("main", *kafka.bootstrap.split(","), prometheus={"url": prometheus[1]}))
    guard = {"action": "Rollback", "queries": [{"name": "p99", "query": "produce_p99", "max": 0.5}]}
    shop.apply(raw_reassignment(plan=raw_plan("e2e-guard", p0=[2, 3]), throttle=SLOW, guard=guard))
    shop.until("Reassignment", "move", "False", "Running")
    prometheus[0] = "0.75"
    shop.until("Reassignment", "move", "False", "GuardBreached")
    assert "query p99: 0.75 (maximum 0.5)" in shop.ready("Reassignment", "move")[2]

    until_state(shop, "RolledBack")

    assert shop.ready("Reassignment", "move")[:2] == ("False", "RolledBackByGuard")
    assert throttles(kafka, "e2e-guard") == {}
    wait_until(lambda: {1, 2} == set(kafka.replicas("e2e-guard")[0]), timeout_s=PATIENCE_S, what="it is as before")


@pytest.mark.shows("E17")
def test_a_canary_moves_and_the_others_wait_for_the_approval_of_the_same_plan(shop: Namespace, kafka: Stock) -> None:
    """One partition, then the digest of plan and base."""
    kafka.create("e2e-canary", [[1, 2], [2, 1]])
    plan = raw_plan("e2e-canary", p0=[2, 3], p1=[3, 1])
    first = {"partitions": 1, "soakSeconds": 1}
    shop.apply(raw_reassignment(plan=plan, canary=first))
    shop.until("Reassignment", "move", "False", "CanaryApprovalRequired")
    assert sorted(kafka.replicas("e2e-canary")[0]) == [2, 3]
    assert kafka.replicas("e2e-canary")[1] == [2, 1]

    digest = shop.status("Reassignment", "move")["digest"]
    shop.apply(raw_reassignment(plan=plan, canary={**first, "approvedDigest": digest}))

    until_state(shop, "Completed")
    wait_until(
        lambda: kafka.replicas("e2e-canary") == [[2, 3], [3, 1]], timeout_s=PATIENCE_S, what="both are as planned"
    )


@pytest.mark.shows("F10", "F12", "F13", "E10")
def test_a_goal_is_proposed_approved_and_reached(shop: Namespace, kafka: Stock) -> None:
    """Another replication factor: figures from real sizes, waiting for its digest, executed as approved."""
    kafka.create("e2e-goal", [[1], [2]])
    kafka.fill("e2e-goal", 100)
    goal = {"replicationFactor": 2, "topics": ["e2e-goal"]}
    shop.apply(raw_reassignment(goal=goal))
    proposed = until_state(shop, "Proposed")
    assert proposed["proposal"]["bytesToMove"] == proposed["proposal"]["lowerBoundBytes"] > 900_000
    assert kafka.replicas("e2e-goal") == [[1], [2]]

    shop.apply(raw_reassignment(goal=goal, approvedDigest=proposed["digest"]))

    until_state(shop, "Completed")
    plan = sorted(proposed["plan"], key=lambda item: item["partition"])
    target = [item["replicas"] for item in plan]
    wait_until(lambda: kafka.replicas("e2e-goal") == target, timeout_s=PATIENCE_S, what="both have two replicas")


@pytest.mark.shows("F11", "E1")
def test_a_plan_in_config_maps_is_carried_out_if_its_digest_is_right(shop: Namespace, kafka: Stock) -> None:
    """Kafka's own file, as text and gzipped; another digest moves nothing."""
    kafka.create("e2e-maps", [[1, 2], [1, 2]])
    target = assignments("e2e-maps", p0=(2, 3), p1=(3, 1))
    packed = base64.b64encode(gzip.compress(document(target[1:]).encode())).decode()
    for name, data in {
        "first": {"data": {"plan.json": document(target[:1])}},
        "second": {"binaryData": {"plan.json.gz": packed}},
    }.items():
        raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": shop.name}, **data}
        shop.api.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(raw), check=True)
    names = ["first", "second"]
    shop.apply(raw_reassignment("wrong", planFrom={"configMaps": names, "digest": f"sha256:{'0' * 64}"}))
    shop.apply(raw_reassignment("gone", planFrom={"configMaps": ["nowhere"], "digest": digest_of(target)}))
    shop.until("Reassignment", "wrong", "False", "DigestDiffers")
    shop.until("Reassignment", "gone", "False", "ConfigMapNotFound")
    assert kafka.replicas("e2e-maps") == [[1, 2], [1, 2]]

    shop.apply(raw_reassignment(planFrom={"configMaps": names, "digest": digest_of(target)}))

    done = until_state(shop, "Completed")
    assert digest_of(target) == done["planDigest"]
    wait_until(lambda: kafka.replicas("e2e-maps") == [[2, 3], [3, 1]], timeout_s=PATIENCE_S, what="replicas as planned")
