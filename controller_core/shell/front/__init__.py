"""Listeners of the controller for clients and brokers.

The controller answers its own requests by handlers and relays all other requests unchanged to a live broker. It can therefore be
advertised as a node on every listener: a client gets Kafka's answer to any request that it sends.
"""
