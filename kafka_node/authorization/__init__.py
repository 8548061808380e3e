"""The authorizer of a process: Kafka's ACLs and rules, the needs of each API, the guard that judges requests, and refusals."""
