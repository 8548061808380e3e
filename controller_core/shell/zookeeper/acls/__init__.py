"""The cluster's ACLs: kept in ZooKeeper's own znodes for them, as every broker with Kafka's AclAuthorizer keeps them."""
