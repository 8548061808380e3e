"""What every Kafka process here needs, controller or broker: TLS, SASL, authorization, probes, tables of API versions.

It builds on kafka_wire only, and knows neither ZooKeeper nor what a process decides.
"""
