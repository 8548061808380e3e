"""The admission webhook: disabled by default, and it blocks nothing when it does not respond."""

from __future__ import annotations

from typing import Any

import pytest

from tests.charts.rendering import NAMESPACE, Chart, Resource, one
from tests.charts.rights import granted

pytestmark = pytest.mark.helm

SERVICE = "steward-webhook"
BY_SECRET: dict[str, Any] = {"enabled": True, "secret": "own", "caBundle": "Q0E="}
BY_CERT_MANAGER: dict[str, Any] = {"enabled": True, "certManager": {"enabled": True}}


def test_it_is_off_by_default(rendered: list[Resource]) -> None:
    """No port, no certificate, nothing that the API server would ask."""
    deployment = one(rendered, "Deployment", "steward-operator")["spec"]["template"]["spec"]

    assert not any(item["kind"] == "ValidatingWebhookConfiguration" for item in rendered)
    assert not any("webhook" in argument for argument in deployment["containers"][0]["args"])


@pytest.mark.shows("E13")
@pytest.mark.parametrize("webhook", [BY_SECRET, BY_CERT_MANAGER], ids=["secret", "cert-manager"])
def test_the_webhook_admits_requests_that_get_no_answer(chart: Chart, webhook: dict[str, Any]) -> None:
    """Static, Ignore, bounded; only for edited Topics and new Reassignments of the namespaces that are served."""
    resources = chart.render({"operator": {"namespaces": ["orders"], "webhook": webhook}})
    (hook,) = one(resources, "ValidatingWebhookConfiguration", f"{NAMESPACE}-steward-resources")["webhooks"]
    service = one(resources, "Service", SERVICE)
    pod = one(resources, "Deployment", "steward-operator")["spec"]["template"]["spec"]
    ports = {item["name"]: item["containerPort"] for item in pod["containers"][0]["ports"]}
    policy = one(resources, "NetworkPolicy", "steward-operator")["spec"]

    assert (hook["failurePolicy"], hook["sideEffects"], hook["timeoutSeconds"]) == ("Ignore", "None", 8)
    assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == [NAMESPACE, "orders"]
    called = {"name": SERVICE, "namespace": NAMESPACE, "path": "/validate", "port": 443}
    assert called == hook["clientConfig"]["service"]
    assert service["spec"]["ports"] == [{"name": "webhook", "port": 443, "targetPort": "webhook"}]
    assert f"--webhook-port={ports['webhook']}" in pod["containers"][0]["args"]
    assert {"ports": [{"port": "webhook"}]} in policy["ingress"]


def test_the_certificate_is_that_of_the_secret_or_of_cert_manager(chart: Chart) -> None:
    """The pod mounts the Secret with the certificate, and the webhook configuration has its CA."""
    by_secret = chart.render({"operator": {"webhook": BY_SECRET}})
    by_manager = chart.render({"operator": {"webhook": BY_CERT_MANAGER}})
    issuer = {"name": "authority", "kind": "ClusterIssuer"}
    manager = {"enabled": True, "issuer": issuer}
    by_issuer = chart.render({"operator": {"webhook": {"enabled": True, "certManager": manager}}})
    name = f"{NAMESPACE}-steward-resources"

    own = one(by_secret, "ValidatingWebhookConfiguration", name)
    assert (_mounted(by_secret), own["webhooks"][0]["clientConfig"]["caBundle"]) == ("own", "Q0E=")
    managed = one(by_manager, "ValidatingWebhookConfiguration", name)["metadata"]["annotations"]
    assert managed == {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/{SERVICE}"}
    certificate = one(by_manager, "Certificate", SERVICE)["spec"]
    assert (_mounted(by_manager), [f"{SERVICE}.{NAMESPACE}.svc"]) == (
        certificate["secretName"],
        certificate["dnsNames"],
    )
    assert one(by_manager, "Issuer", SERVICE)["spec"] == {"selfSigned": {}}
    assert issuer == one(by_issuer, "Certificate", SERVICE)["spec"]["issuerRef"]
    assert not any(item["kind"] == "Issuer" for item in by_issuer)


def _mounted(resources: list[Resource]) -> str:
    volumes = one(resources, "Deployment", "steward-operator")["spec"]["template"]["spec"]["volumes"]
    (secret,) = [item["secret"]["secretName"] for item in volumes if item["name"] == "webhook"]
    return str(secret)


def test_it_checks_approvals_where_no_policy_does_and_then_fails_closed(chart: Chart) -> None:
    """Only requests with an approval are sent: while no operator runs, all other requests are admitted."""
    values = {"operator": {"webhook": BY_SECRET}, "admission": {"approveRight": "Webhook"}}
    resources = chart.render(values)
    hooks = one(resources, "ValidatingWebhookConfiguration", f"{NAMESPACE}-steward-resources")["webhooks"]
    deployment = one(resources, "Deployment", "steward-operator")["spec"]["template"]["spec"]
    with_policy = chart.render({"operator": {"webhook": BY_SECRET}})
    (only,) = one(with_policy, "ValidatingWebhookConfiguration", f"{NAMESPACE}-steward-resources")["webhooks"]

    assert {hook["name"]: (hook["failurePolicy"], hook["clientConfig"]["service"]["path"]) for hook in hooks} == {
        "resources.steward.dev": ("Ignore", "/validate"),
        "clusters.approvals.steward.dev": ("Fail", "/approve"),
        "reassignments.approvals.steward.dev": ("Fail", "/approve"),
    }
    assert "--webhook-approvals" in deployment["containers"][0]["args"]
    assert not any(
        item["kind"].startswith("ValidatingAdmissionPolicy") and "approve" in item["metadata"]["name"]
        for item in resources
    )
    assert ("create", "authorization.k8s.io", "subjectaccessreviews", None) in granted(resources, "steward-operator")
    assert only["name"] == "resources.steward.dev"


def test_approvals_cannot_be_checked_by_a_webhook_that_is_off(chart: Chart) -> None:
    """The values contradict each other."""
    with pytest.raises(AssertionError, match="enable the webhook, or set Policy or Disabled"):
        chart.render({"admission": {"approveRight": "Webhook"}})
