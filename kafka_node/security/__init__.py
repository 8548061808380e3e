"""TLS contexts, SASL credentials, and the files that they are read from: for listeners, and for connections to brokers."""
