"""The admission webhook asked by a real API server, by the chart's own configuration; the brokers are fakes, in one test real ones."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_operator.engine.admission import Admission
from kafka_operator.engine.approvals import Approvals
from kafka_operator.kube.approvals import ApprovalClient
from kafka_operator.metrics import KafkaMetrics
from lab.downloads.helm import helm
from lab.peers.authority import Authority
from lab.peers.kraft import KraftCluster
from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.steward import StewardOperator
from lab.processes.ports import free_port, release_port
from lab.processes.waiting import wait_until
from reconciler.kube.client import KubeClient
from reconciler.kube.login import configuration
from reconciler.webhook import Webhook
from tests.charts.rendering import Chart
from tests.kafka_operator.approvals import DIGEST, RBAC, role
from tests.kafka_operator.conftest import ROLE
from tests.kafka_operator.fake_kafka import FakeKafka
from tests.kafka_operator.live import PATIENCE_S, Namespace
from tests.kafka_operator.makers import raw_cluster, raw_reassignment, raw_topic
from tests.reconciler.gate import Gate

pytestmark = [pytest.mark.kubernetes, pytest.mark.helm]

BAD = raw_topic("bad", config={"no.such.setting": "1"})


class Hook:
    """A port with a certificate, which the API server asks about the resources of one namespace."""

    def __init__(self, api: KubernetesApi, folder: Path, name: str, approve_right: str = "Policy") -> None:
        authority = Authority(folder)
        self.port = free_port()
        self.certificate, self.private_key = authority.sign("webhook", "/CN=webhook")
        self.namespace = Namespace(api, name)
        bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
        webhook = {"enabled": True, "secret": "own", "caBundle": bundle}
        kind = "ValidatingWebhookConfiguration"
        values = {"operator": {"namespaces": [name], "webhook": webhook}, "admission": {"approveRight": approve_right}}
        rendered = Chart(helm()).render(values)
        (made,) = [item for item in rendered if item["kind"] == kind]
        made["metadata"]["name"] = name
        for called in made["webhooks"]:
            path = called["clientConfig"]["service"]["path"]
            called["clientConfig"] = {"caBundle": bundle, "url": f"https://127.0.0.1:{self.port}{path}"}
        api.kubectl("apply", "-f", "-", stdin=ROLE, check=True)
        api.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(made), check=True)

    def refusal_of(self, user: str, raw: Mapping[str, Any]) -> str:
        """Have a user try to apply a resource; return the message of the refusal, empty when it would be admitted."""
        named = {**raw, "metadata": {**raw["metadata"], "namespace": self.namespace.name}}
        arguments = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", f"--as={user}", "-f", "-")
        done = self.namespace.api.kubectl(*arguments, stdin=yaml.safe_dump(named))
        return done.stderr if done.returncode else ""

    def output(self, raw: Mapping[str, Any], *options: str) -> str:
        """Apply a resource; return the message to the user: a rejection, or warnings."""
        named = {**raw, "metadata": {**raw["metadata"], "namespace": self.namespace.name}}
        return self.namespace.api.kubectl("apply", "-f", "-", *options, stdin=yaml.safe_dump(named)).stderr

    def until_message(self, message: str) -> None:
        """Wait until the message for a bad Topic contains this: an API server uses a new webhook within seconds."""
        messages: list[str] = []

        def answered() -> bool:
            messages.append(self.output(BAD, "--dry-run=server"))
            return message in messages[-1]

        wait_until(answered, timeout_s=PATIENCE_S, what="the webhook is asked", context=lambda: str(messages[-1:]))


@pytest.fixture
def hook(api: KubernetesApi, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Hook]:
    """A webhook for a namespace of this test's own."""
    made = Hook(api, tmp_path, f"hook-{request.node.name.replace('_', '-')}"[:60].strip("-"))
    yield made
    api.kubectl("delete", "ValidatingWebhookConfiguration", made.namespace.name, check=True)
    made.namespace.empty()
    release_port(made.port)


@pytest.mark.shows("E13")
async def test_a_refusal_by_the_brokers_is_shown_at_apply(api: KubernetesApi, hook: Hook) -> None:
    """Features (e) 13: before anything is stored; what the brokers take is stored, and what only they know is a warning."""
    kafka = FakeKafka(Gate())
    kafka.add("late", [(1, 2)] * 2)
    async with contextlib.AsyncExitStack() as stack:
        kube = KubeClient(await configuration(api.kubeconfig_for(OPERATOR), None), KafkaMetrics())
        stack.push_async_callback(kube.close)
        admission = Admission(
            kube, lambda *_: kafka, KafkaMetrics(), namespaces=(), clock=time.monotonic, rng=random.Random(1)
        )
        stack.push_async_callback(admission.close)
        webhook = Webhook(hook.certificate, hook.private_key, admission.review)
        stack.push_async_callback(webhook.close)
        await webhook.start("127.0.0.1", hook.port)
        await asyncio.to_thread(_apply_all, hook)
    assert sorted(kafka.topics) == ["late"]


def _process(api: KubernetesApi, hook: Hook, folder: Path) -> StewardOperator:
    """Return an operator for the namespace of a webhook, which serves it."""
    options = {"port": hook.port, "certificate": hook.certificate, "private-key": hook.private_key}
    arguments = [
        f"--namespace={hook.namespace.name}",
        *(f"--webhook-{name}={value}" for name, value in options.items()),
    ]
    return StewardOperator(api.kubeconfig_for(OPERATOR), folder / "operator", arguments=arguments)


def _apply_all(hook: Hook) -> None:
    namespace = hook.namespace
    namespace.apply(raw_cluster("main", "kafka:9092"))
    hook.until_message(
        "InvalidConfig: Topic bad is rejected: validation by the brokers failed: Unknown topic config name"
    )
    assert "larger than available brokers: 4" in namespace.refusal(raw_topic("wide", replicationFactor=7))
    assert "UnknownBroker" in namespace.refusal(raw_reassignment("far", goal={"removeBrokers": [77]}))
    namespace.apply(raw_topic("good"))
    namespace.apply(raw_reassignment("drain", goal={"removeBrokers": [1]}))
    never = [{"schedule": "0 0 30 2 *", "duration": "1h"}]
    assert "InvalidWindow" in namespace.refusal(raw_reassignment("never", goal={"removeBrokers": [1]}, windows=never))
    edited = raw_reassignment("drain", goal={"removeBrokers": [1]}, windows=never)
    assert "Warning: A window of spec.windows is invalid" in hook.output(edited)
    assert "InvalidConfig" in namespace.refusal(raw_topic("good", config={"no.such.setting": "1"}))
    assert "partitions cannot be removed" in hook.output(raw_topic("late", partitions=1, replicationFactor=2))
    assert namespace.get("Topic", "late") is not None


@pytest.mark.kafka
@pytest.mark.shows("E13")
def test_the_operators_process_refuses_what_brokers_of_kafka_4_refuse(
    api: KubernetesApi, hook: Hook, kraft_cluster: KraftCluster, tmp_path: Path
) -> None:
    """With the message of the brokers, before anything is stored; what they accept is stored and created."""
    operator = _process(api, hook, tmp_path)
    operator.start()
    try:
        hook.namespace.apply(raw_cluster("main", *kraft_cluster.bootstrap().split(",")))
        hook.until_message("validation by the brokers failed: Unknown topic config name: no.such.setting")
        wide = hook.namespace.refusal(raw_topic("wide", replicationFactor=7))
        assert "The target replication factor of 7 cannot be reached because only 3 broker(s) are registered" in wide
        assert "UnknownBroker" in hook.namespace.refusal(raw_reassignment("far", goal={"removeBrokers": [77]}))
        hook.namespace.apply(raw_topic("e2e-admitted"))
        hook.namespace.until("Topic", "e2e-admitted", "True", "AsDeclared")
        hook.namespace.empty()
    finally:
        operator.close()


def test_the_operators_process_answers_and_a_missing_one_blocks_no_request(
    api: KubernetesApi, hook: Hook, tmp_path: Path
) -> None:
    """No broker answers: a warning. No operator answers: nothing at all (Ignore)."""
    operator = _process(api, hook, tmp_path)
    operator.start()
    try:
        hook.namespace.apply(raw_cluster("main", "127.0.0.1:1"))
        hook.until_message("No broker of Cluster main responds at 127.0.0.1:1")
        hook.namespace.apply(BAD)
        hook.namespace.empty()
    finally:
        operator.close()
    hook.namespace.apply(raw_topic("later", config={"no.such.setting": "1"}))


@pytest.mark.shows("E19")
async def test_approvals_are_refused_to_users_without_the_right_and_while_no_operator_runs(
    api: KubernetesApi, tmp_path: Path
) -> None:
    """SubjectAccessReview by the operator's account; other requests pass without it."""
    hook = Hook(api, tmp_path, "hook-approvals", "Webhook")
    items = [*role("editor", hook.namespace.name), *role("approver", hook.namespace.name, "approve"), *reviewer()]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    api.kubectl("apply", "-f", "-", stdin=text, check=True)
    try:
        async with contextlib.AsyncExitStack() as stack:
            kube = KubeClient(await configuration(api.kubeconfig_for(OPERATOR), None), KafkaMetrics())
            stack.push_async_callback(kube.close)
            approvals = Approvals(ApprovalClient(kube), KafkaMetrics())
            webhook = Webhook(hook.certificate, hook.private_key, approvals.review, approvals.review)
            stack.push_async_callback(webhook.close)
            await webhook.start("127.0.0.1", hook.port)
            await asyncio.to_thread(_approve_all, hook)
        assert "failed calling webhook" in hook.refusal_of("approver", AUTOMATIC)
        assert hook.refusal_of("editor", WAITING) == ""
    finally:
        api.kubectl("delete", "-f", "-", stdin=text, check=True)
        api.kubectl("delete", "ValidatingWebhookConfiguration", hook.namespace.name, check=True)
        release_port(hook.port)


WAITING = raw_reassignment("waits", goal={"removeBrokers": [1]})
CANARY = raw_reassignment("canary", goal={"removeBrokers": [1]}, canary={"partitions": 1, "approvedDigest": DIGEST})
AUTOMATIC = raw_reassignment("runs", goal={"removeBrokers": [1]}, approval="Automatic")


def reviewer() -> list[dict[str, Any]]:
    """The right of the operator to have rights reviewed, as the chart grants it."""
    metadata = {"name": "steward-reviewer-tests"}
    rules = [{"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}]
    return [
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": metadata["name"]},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": OPERATOR}],
        },
    ]


def _approve_all(hook: Hook) -> None:
    answers: list[str] = []

    def in_force() -> bool:
        answers.append(hook.refusal_of("editor", AUTOMATIC))
        return "ApprovalForbidden" in answers[-1]

    wait_until(in_force, timeout_s=PATIENCE_S, what="the webhook is asked", context=lambda: str(answers[-1:]))
    assert "User editor is not allowed to approve Reassignments" in answers[-1]
    assert "in namespace hook-approvals. Set spec.approval to Required" in answers[-1]
    assert hook.refusal_of("approver", AUTOMATIC) == ""
    assert hook.refusal_of("editor", WAITING) == ""
    assert "ask a user with this right to set spec.canary.approvedDigest." in hook.refusal_of("editor", CANARY)
    assert hook.refusal_of("approver", CANARY) == ""
