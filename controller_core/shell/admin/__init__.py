"""Kafka's requests to events of the core, and its replies to responses: one module for each family of APIs.

Leaves out deciding (the core), who may ask (authorization), and requests that the controller does not own (the relay).
"""
