"""`/cluster/id`: the cluster id, created once by the first broker. Source: ClusterIdZNode in kafka.zk.ZkData."""

from kafka_zookeeper import paths
from kafka_zookeeper.formats.documents import quote, read_object, text_field


def encode_cluster_id(cluster_id: str) -> bytes:
    """Return the document; its version is a string."""
    return f'{{"version":"1","id":{quote(cluster_id)}}}'.encode()


def decode_cluster_id(data: bytes | None) -> str:
    """Decode the cluster id: usually 16 bytes in base64, but any text is valid."""
    return text_field(paths.CLUSTER_ID, read_object(paths.CLUSTER_ID, data), "id")
