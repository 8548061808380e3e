"""Kafka's own command line tools, run from the jars: they check whether the Steward controller answers as Kafka does."""

from __future__ import annotations

import subprocess

from lab.peers.java_process import java_command
from lab.peers.kraft import kafka_4_command

HEAP = "64m"

TIMEOUT_S = 120.0
"""Twice the tools' own default time-out of a minute, so that their error is reported and not this one."""


def kafka_topics(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-topics with these arguments, as `"--bootstrap-server", "127.0.0.1:9092", "--list"`; a failure is a returncode."""
    return run_tool("org.apache.kafka.tools.TopicCommand", *arguments, timeout_s=timeout_s)


def kafka_reassign_partitions(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-reassign-partitions with these arguments."""
    return run_tool("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *arguments, timeout_s=timeout_s)


def kafka_leader_election(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-leader-election with these arguments."""
    return run_tool("org.apache.kafka.tools.LeaderElectionCommand", *arguments, timeout_s=timeout_s)


def kafka_configs(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-configs with these arguments."""
    return run_tool("kafka.admin.ConfigCommand", *arguments, timeout_s=timeout_s)


def kafka_features(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-features with these arguments."""
    return run_tool("org.apache.kafka.tools.FeatureCommand", *arguments, timeout_s=timeout_s)


def kafka_consumer_groups(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-consumer-groups with these arguments."""
    return run_tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", *arguments, timeout_s=timeout_s)


def kafka_transactions(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-transactions with these arguments."""
    return run_tool("org.apache.kafka.tools.TransactionsCommand", *arguments, timeout_s=timeout_s)


def kafka_metadata_quorum(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-metadata-quorum of Kafka 4.x with these arguments."""
    return run_tool_of_kafka_4("org.apache.kafka.tools.MetadataQuorumCommand", *arguments, timeout_s=timeout_s)


def kafka_4_features(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-features of Kafka 4.x with these arguments."""
    return run_tool_of_kafka_4("org.apache.kafka.tools.FeatureCommand", *arguments, timeout_s=timeout_s)


def kafka_dump_log(*arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run kafka-dump-log of Kafka 4.x with these arguments."""
    return run_tool_of_kafka_4("org.apache.kafka.tools.DumpLogSegments", *arguments, timeout_s=timeout_s)


def run_tool_of_kafka_4(
    main_class: str, *arguments: str, timeout_s: float = TIMEOUT_S, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run any main class of the jars of Kafka 4.x to its end, with `stdin` as its input, and return its outputs and exit code."""
    command = kafka_4_command(main_class, *arguments, heap=HEAP, log4j="log4j-tools.properties")
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout_s, input=stdin)


def run_tool(main_class: str, *arguments: str, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run any main class of Kafka's jars to its end and return its outputs and exit code."""
    command = java_command(main_class, *arguments, heap=HEAP, log4j="log4j-tools.properties")
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout_s)
