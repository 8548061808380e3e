"""Control plane of a broker in a cluster in ZooKeeper mode (Kafka up to 3.9), whose controller is Steward's or one of Kafka's brokers (ADR 65).

`registration` holds the session, `entity_configs` and `users` read what brokers read from ZooKeeper, `state` and `controller_requests` take
over what the controller sends, `controller_client` asks the controller, `control` puts them together. `options` imports no ZooKeeper client:
the settings are read without it.
"""
