"""Settings of Kafka's authorizers in a properties file. Source: StandardAuthorizer.configure."""

from collections.abc import Mapping

from kafka_node.authorization.authorizer import Rules
from kafka_node.configs.setting_rules import SettingError
from kafka_node.node_settings import setting_value

AUTHORIZER = "authorizer.class.name"
SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS = frozenset({STANDARD_AUTHORIZER, "kafka.security.authorizer.AclAuthorizer"})
"""Kafka's authorizers, whose rules `authorizer` has."""

OWN_NAMES = frozenset({SUPER_USERS, ALLOW_EVERYONE})
"""Settings of the authorizer, which are not in the table of settings."""


def read_rules(values: Mapping[str, str]) -> Rules | None:
    """Return the rules of the authorizer; None without one. Raises SettingError.

    >>> read_rules({AUTHORIZER: STANDARD_AUTHORIZER, SUPER_USERS: "User:a; User:b"}).super_users == {"User:a", "User:b"}
    True
    """
    if not setting_value(values, AUTHORIZER):
        return None
    users = frozenset(user.strip() for user in values.get(SUPER_USERS, "").split(";") if user.strip())
    for user in users:
        if ":" not in user:
            raise SettingError(f"{SUPER_USERS} has {user}, which is not TYPE:NAME, such as User:admin.")
    return Rules(users, values.get(ALLOW_EVERYONE, "false").strip().lower() == "true")
