"""Labels of the Spark operator."""

from __future__ import annotations

from reconciler.names import GROUP

SPARK_APPLICATION_LABEL = f"{GROUP}/spark-application-uid"
"""Label of all pods of a SparkApplication: its uid, since a name may be longer than a label's value."""

SPARK_ROLE_LABEL = f"{GROUP}/spark-role"
"""Label of a SparkApplication's pods: driver or executor."""

SPARK_ATTEMPT_LABEL = f"{GROUP}/spark-attempt"
"""Label of a SparkApplication's pods: the attempt that they belong to, from 1."""
