"""Print the cluster's metadata of brokers and topics as one line of JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from kafka import KafkaAdminClient

from e2e.pods.clients import PATIENT


def described(admin: Any, topics: list[str] | None) -> dict[str, Any]:
    """Return controller, brokers with their racks, and each topic's partitions: leader, replicas, isr."""
    cluster = admin.describe_cluster()
    return {
        "controller": cluster["controller_id"],
        "brokers": {str(broker["broker_id"]): broker.get("rack") for broker in cluster["brokers"]},
        "topics": {
            topic["name"]: {
                str(partition["partition_index"]): {
                    "leader": partition["leader_id"],
                    "replicas": partition["replica_nodes"],
                    "isr": partition["isr_nodes"],
                }
                for partition in topic["partitions"]
            }
            for topic in admin.describe_topics(topics)
            if topic["error_code"] == 0
        },
    }


if __name__ == "__main__":
    client = KafkaAdminClient(**PATIENT)
    sys.stdout.write(json.dumps(described(client, sys.argv[1:] or None)) + "\n")
    client.close()
