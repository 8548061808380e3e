"""Policies of brokers that the controller cannot apply: Java classes that judge new topics and changed configurations (KIP-108, KIP-133).

A controller that creates topics without a policy that the cluster's owner has set would break the owner's rule silently.
"""

from collections.abc import Mapping

CREATE_TOPIC_POLICY = "create.topic.policy.class.name"
ALTER_CONFIG_POLICY = "alter.config.policy.class.name"
POLICY_SETTINGS = (CREATE_TOPIC_POLICY, ALTER_CONFIG_POLICY)


class PolicyError(Exception):
    """A broker has a policy that the controller cannot apply."""


def unsupported_policies(broker: int, policies: Mapping[str, str]) -> PolicyError | None:
    """Tell why the controller must not serve a cluster with these policies; None when there are none."""
    if not policies:
        return None
    found = " and ".join(f"{name}={class_name}" for name, class_name in sorted(policies.items()))
    return PolicyError(
        f"broker {broker} sets {found}: the controller cannot run Java classes, so it would not apply the policy. Remove the "
        "setting from the brokers, or start the controller with --ignore-topic-policies"
    )
