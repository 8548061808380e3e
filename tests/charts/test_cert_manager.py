"""Resources for cert-manager, of docs/security.md and of the chart, judged by an API server with cert-manager's own definitions.

`cert-manager.yaml.gz` has `deploy/crds/cert-manager.io_certificates.yaml` and `cert-manager.io_issuers.yaml` of cert-manager v1.21.1, unchanged
(Apache License 2.0). No cert-manager runs: that it issues what the Secret needs is its own affair.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.peers.kubernetes import KubernetesApi
from lab.processes.waiting import wait_until
from tests.charts.rendering import NAMESPACE, TIMEOUT_S, Chart
from tests.charts.test_webhook import BY_CERT_MANAGER
from tests.kafka_operator.pages import DOCS, resources

pytestmark = [pytest.mark.helm, pytest.mark.kubernetes]

DEFINITIONS = Path(__file__).parent / "cert-manager.yaml.gz"
GROUP = "/apis/cert-manager.io/v1"


@pytest.fixture(scope="module")
def issuing_api(api: KubernetesApi) -> Iterator[KubernetesApi]:
    """The API server with the kinds of cert-manager."""
    text = gzip.decompress(DEFINITIONS.read_bytes()).decode("utf-8")
    api.kubectl("apply", "--server-side", "--filename=-", stdin=text, check=True)
    wait_until(
        lambda: all(api.get(f"{GROUP}/{kind}") is not None for kind in ("certificates", "issuers")),
        timeout_s=TIMEOUT_S,
        what="the kinds of cert-manager are served",
    )
    yield api
    api.kubectl("delete", "--wait=false", "--filename=-", stdin=text)


def refusal(api: KubernetesApi, resource: dict[str, Any]) -> str:
    """Return why the API server rejects a resource, empty if it accepts it; an unknown field is an error."""
    done = api.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin=json.dumps(resource))
    return done.stderr if done.returncode else ""


def test_the_certificate_of_the_page_is_accepted(issuing_api: KubernetesApi) -> None:
    """With a misspelt field it is not: the definitions are the real ones."""
    page = (DOCS / "security.md").read_text(encoding="utf-8")
    (certificate,) = [found for found in resources(page) if found["kind"] == "Certificate"]
    wrong = certificate | {"spec": certificate["spec"] | {"usages": ["server authentication"]}}

    assert refusal(issuing_api, certificate) == ""
    assert "spec.usages[0]: Unsupported value" in refusal(issuing_api, wrong)


@pytest.mark.parametrize("issuer", [None, {"name": "authority", "kind": "ClusterIssuer"}], ids=["own", "given"])
def test_the_certificate_of_the_webhook_is_accepted(
    issuing_api: KubernetesApi, chart: Chart, issuer: dict[str, str] | None
) -> None:
    """With an issuer of its own, and with the user's."""
    manager = {"enabled": True} | ({} if issuer is None else {"issuer": issuer})
    rendered = chart.render({"operator": {"webhook": BY_CERT_MANAGER | {"certManager": manager}}})
    found = [item for item in rendered if item["apiVersion"].startswith("cert-manager.io/")]

    assert {item["kind"] for item in found} == ({"Certificate", "Issuer"} if issuer is None else {"Certificate"})
    assert {item["metadata"]["namespace"] for item in found} == {NAMESPACE}
    assert [text for item in found if (text := refusal(issuing_api, item))] == []
