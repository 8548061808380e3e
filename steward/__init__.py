"""The command line: `steward controller`, `steward operator`."""
