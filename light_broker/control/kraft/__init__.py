"""Control plane of a broker in a cluster with KRaft controllers: Steward's, or Kafka's.

The process imports this package when `process.roles` is set (tests/light_broker/test_imports.py).
"""
