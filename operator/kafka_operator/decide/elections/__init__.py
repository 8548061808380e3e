"""Decisions on Elections."""
