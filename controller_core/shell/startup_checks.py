"""Checks that stop a controller which must not serve the cluster.

Identity: no broker has the controller's id, none can get it automatically, and no partition has replicas under it. Brokers and
clients know the controller as one more broker under that id.

Policies: brokers may name Java classes that validate new topics and changed configurations (KIP-108, KIP-133). A controller without
these classes would break the rules of the cluster's owner silently.
"""

from collections.abc import Mapping, Sequence

from controller_core.model import Broker

MAX_PARTITIONS_NAMED = 20
"""Partitions that an error names: enough to recognise the broker, in a line of readable length."""
CREATE_TOPIC_POLICY = "create.topic.policy.class.name"
ALTER_CONFIG_POLICY = "alter.config.policy.class.name"
POLICY_SETTINGS = (CREATE_TOPIC_POLICY, ALTER_CONFIG_POLICY)


class IdentityError(Exception):
    """The controller's id belongs to a broker, or a broker may get it."""


class PolicyError(Exception):
    """A broker has a policy that the controller cannot apply."""


def is_registered(own: int, broker: Broker | None) -> IdentityError:
    """Return the error for a broker that is registered under the controller's id; None: its registration cannot be decoded."""
    endpoints = () if broker is None else broker.endpoints
    where = ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints)
    return IdentityError(
        f"the controller's id {own} is a broker's ({where or 'whose registration cannot be read'}): choose an id that no "
        "broker has, at most reserved.broker.max.id (1000)"
    )


def holds_replicas(own: int, partitions: Sequence[str]) -> IdentityError:
    """Return the error for partitions that have replicas under the controller's id."""
    named = ", ".join(partitions[:MAX_PARTITIONS_NAMED])
    more = len(partitions) - MAX_PARTITIONS_NAMED
    return IdentityError(
        f"the controller's id {own} belongs to a broker that is away or was removed: it is the leader, in the ISR or a "
        f"replica of {len(partitions)} partitions: {named}{f' and {more} more' if more > 0 else ''}. No partition was "
        "changed. Choose an id that no broker has or had, at most reserved.broker.max.id (1000). To keep this id, first "
        "move these partitions to other brokers with kafka-reassign-partitions.sh, while a broker or a controller with "
        "another id is the active controller"
    )


def over_reserved_max(own: int, broker: int, reserved_max_id: int) -> IdentityError | None:
    """Return the error for an id that a broker may get automatically; None for a valid id."""
    if own <= reserved_max_id:
        return None
    return IdentityError(
        f"the controller's id {own} is over reserved.broker.max.id {reserved_max_id} of broker {broker}, "
        "which may be given to a broker: choose a lower one"
    )


def unsupported_policies(broker: int, policies: Mapping[str, str]) -> PolicyError | None:
    """Return the error for policies of a broker; None when there are none."""
    if not policies:
        return None
    found = " and ".join(f"{name}={class_name}" for name, class_name in sorted(policies.items()))
    return PolicyError(
        f"broker {broker} sets {found}: the controller cannot run Java classes, so it would not apply the policy. Remove the "
        "setting from the brokers, or start the controller with --ignore-topic-policies"
    )
