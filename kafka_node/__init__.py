"""Parts that every Kafka process needs, controller or broker: settings and configs, TLS, SASL, authorization, probes, tables of API versions.

It builds on kafka_wire only, and depends neither on ZooKeeper nor on the decisions of a process.
"""
