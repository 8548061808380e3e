"""Who may come in, and as whom we go out: TLS contexts, SASL credentials, and the files that they are read from."""
