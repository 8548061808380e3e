"""Rights that requests need as a whole on a broker in ZooKeeper mode, in addition to those of every broker.

Source: KafkaApis of Kafka 3.9.
"""

from kafka_node.authorization.acl import Operation
from kafka_node.authorization.needs import on_cluster
from kafka_node.authorization.table import Table
from kafka_wire import ApiKey

NEEDS: Table = {
    ApiKey.LEADER_AND_ISR: (on_cluster(Operation.CLUSTER_ACTION),),
    ApiKey.STOP_REPLICA: (on_cluster(Operation.CLUSTER_ACTION),),
    ApiKey.UPDATE_METADATA: (on_cluster(Operation.CLUSTER_ACTION),),
}
"""Requests of the controller."""
