"""The `steward` command line."""
