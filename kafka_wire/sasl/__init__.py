"""SASL mechanisms of Kafka, client and server side: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.

Each message returns a step: the reply, and the next state. There are no sockets, clocks or random sources: nonces are arguments.
kafka_wire.net sends the messages in Kafka's requests.

Not supported: GSSAPI, OAUTHBEARER, delegation tokens, and SASLprep. As in Kafka (ScramFormatter.normalize), names and passwords are
only encoded as UTF-8.
"""
