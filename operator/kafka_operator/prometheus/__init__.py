"""Queries of a Prometheus server."""
