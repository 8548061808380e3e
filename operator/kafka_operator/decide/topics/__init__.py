"""Decisions on Topics."""
