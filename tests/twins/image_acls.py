"""All ACLs of an image read at once: the plain twin of the authorizer's ACLs, which follow the image change by change."""

from kafka_metadata.image import MetadataImage
from kafka_metadata.security_records import acl_binding
from kafka_node.authorization.acl import Entry, Pattern
from kafka_node.authorization.acls import Acls


def acls_of(image: MetadataImage) -> Acls:
    """Return all ACLs of an image. Raises MetadataError as acl_binding."""
    entries: dict[Pattern, set[Entry]] = {}
    for record in image.acls.values():
        binding = acl_binding(record)
        entries.setdefault(binding.pattern, set()).add(binding.entry)
    return Acls(entries)
