"""Who may ask for what: each request needs operations on resources, which an authorizer judges by the cluster's ACLs."""
