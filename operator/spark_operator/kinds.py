"""Kinds of the Spark operator, which are served with --spark."""

from __future__ import annotations

from reconciler.names import Kind

SPARK_APPLICATION = Kind("SparkApplication")
SCHEDULED_SPARK_APPLICATION = Kind("ScheduledSparkApplication")

KINDS = (SPARK_APPLICATION, SCHEDULED_SPARK_APPLICATION)
"""All of them; runs before the schedules that own them."""
