"""Annotations and labels of the Kafka operator."""

from __future__ import annotations

from reconciler.names import GROUP

MANAGED_CONFIG = f"{GROUP}/managed-config"
"""Annotation of a Topic: the settings' names that this Topic may have set, comma-separated, written before they are set."""

ORIGIN = f"{GROUP}/origin"
"""Annotation of a Topic: whether its Kafka topic was to be created or was found, written before either has an effect (topic_origin)."""

ADOPT = f"{GROUP}/adopt"
"""Annotation that a user sets on a Topic to have a Kafka topic that differs from it made as declared."""

CLUSTER_LABEL = f"{GROUP}/cluster"
"""Label that the owner of a StatefulSet sets to a Cluster's name, so that the operator may scale it and replace its pods."""
