"""SASL as Kafka speaks it: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, both sides, over values.

A message goes in, a step comes out (what to send, and what is awaited then). No sockets, no clocks, no random sources:
nonces are arguments.

Left out: Kafka's requests that carry the messages (kafka_wire.net), GSSAPI, OAUTHBEARER, delegation tokens, and SASLprep:
Kafka prepares names and passwords by nothing but UTF-8 (ScramFormatter.normalize), and so do we.
"""
