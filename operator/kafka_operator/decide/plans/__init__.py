"""Plans of Reassignments: from a goal or a document to partitions with their replicas."""
