"""Settings that name Java classes: those without an equivalent stop the start, since Steward cannot run them."""

from collections.abc import Mapping

from kafka_node.configs.setting_rules import SettingError

POLICIES: Mapping[str, frozenset[str]] = {
    "alter.config.policy.class.name": frozenset(),
    "create.topic.policy.class.name": frozenset(),
    "kafka.metrics.reporters": frozenset(),
    "metric.reporters": frozenset({"org.apache.kafka.common.metrics.JmxReporter"}),
    "principal.builder.class": frozenset(
        {"org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"}
    ),
    "security.providers": frozenset(),
    "ssl.engine.factory.class": frozenset(),
}
"""Settings of every node, with the classes that have an equivalent here."""


def check_classes(values: Mapping[str, str], equivalents: Mapping[str, frozenset[str]]) -> None:
    """Raise SettingError for a class without an equivalent."""
    for name, classes in equivalents.items():
        for given in filter(None, (part.strip() for part in values.get(name, "").split(","))):
            if given not in classes:
                known = f" Steward has an equivalent of {', '.join(sorted(classes))}." if classes else ""
                raise SettingError(
                    f"{name} is {given}, and Steward cannot run Java classes.{known} Remove the setting."
                )
