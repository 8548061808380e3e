"""Settings of nodes and configs of topics: tables, types of values, and rules. Pure."""
