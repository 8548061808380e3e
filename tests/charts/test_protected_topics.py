"""Protection of topics from accidental deletion: the chart's ValidatingAdmissionPolicy on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lab.peers.kubernetes import KubernetesApi
from lab.processes.waiting import wait_until
from tests.charts.rendering import NAMESPACE, TIMEOUT_S, Chart, one, served_namespaces

pytestmark = [pytest.mark.helm, pytest.mark.kubernetes]

POLICY = f"{NAMESPACE}-steward-protected-topics"
LEAVING = "leaving"
"""A namespace that is deleted; nothing in the lab empties it, so that no other test can use it any more."""

REFUSAL = (
    "Topic kept is protected (deletionPolicy Protect). To delete it, set spec.deletionPolicy to Delete or Retain first."
)


class Admin:
    """What a person does with Topics in one namespace."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    def take(self, name: str, policy: str) -> None:
        """Apply a Topic."""
        topic = {
            "apiVersion": "steward.dev/v1alpha1",
            "kind": "Topic",
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {
                "clusterRef": {"name": "main"},
                "partitions": 1,
                "replicationFactor": 1,
                "deletionPolicy": policy,
            },
        }
        self._api.kubectl("apply", "--filename=-", stdin=json.dumps(topic), check=True)

    def delete(self, name: str) -> str:
        """Delete a Topic; return the words of the refusal, empty when it went."""
        done = self._api.kubectl(f"--namespace={self._namespace}", "delete", "topic", name, "--wait=false")
        return done.stderr if done.returncode else ""


@pytest.fixture
def protected(chart: Chart, api: KubernetesApi) -> Iterator[None]:
    """The policy and its binding as the chart renders them, in force."""
    resources = chart.render({"operator": {"namespaces": [LEAVING]}})
    found = [one(resources, f"ValidatingAdmissionPolicy{suffix}", POLICY) for suffix in ("", "Binding")]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": found})
    api.kubectl("apply", "--filename=-", stdin=text, check=True)
    admin = Admin(api, NAMESPACE)

    def in_force() -> bool:
        admin.take("probe", "Protect")
        return bool(admin.delete("probe"))

    wait_until(in_force, timeout_s=TIMEOUT_S, what="the policy is in force")
    yield
    api.kubectl("delete", "--filename=-", stdin=text, check=True)
    wait_until(lambda: not in_force(), timeout_s=TIMEOUT_S, what="the policy is gone")


@pytest.mark.shows("F25")
@pytest.mark.usefixtures("protected")
def test_a_protected_topic_is_not_deleted_until_it_is_no_longer_protected(api: KubernetesApi) -> None:
    """Features (e) 7: refused at admission, with a message that names what to do; others are deleted as usual."""
    admin = Admin(api, NAMESPACE)
    admin.take("kept", "Protect")
    admin.take("free", "Retain")

    assert REFUSAL in admin.delete("kept")
    assert admin.delete("free") == ""
    admin.take("kept", "Delete")
    assert admin.delete("kept") == ""


@pytest.mark.usefixtures("protected")
def test_a_namespace_that_goes_takes_its_protected_topics_along(api: KubernetesApi) -> None:
    """A namespace is never wedged: what is in it can be deleted once it is being deleted itself."""
    api.kubectl("create", "namespace", LEAVING, check=True)
    admin = Admin(api, LEAVING)
    admin.take("kept", "Protect")
    assert REFUSAL in admin.delete("kept")

    api.kubectl("delete", "namespace", LEAVING, "--wait=false", check=True)

    wait_until(lambda: not admin.delete("kept"), timeout_s=TIMEOUT_S, what="the topic may go")


def test_the_policy_is_bound_to_the_namespaces_that_are_served(chart: Chart) -> None:
    """The policy does not apply to another operator's Topics; with all namespaces it applies in all of them."""
    assert served_namespaces(chart, POLICY) == ([NAMESPACE], None)


def test_without_the_policy_nothing_of_it_is_rendered(chart: Chart) -> None:
    """It is of no namespace: who may not create such a thing switches it off."""
    names = {item["metadata"]["name"] for item in chart.render({"admission": {"protectTopics": False}})}

    assert POLICY not in names
