"""Handlers of the APIs that the controller answers itself: requests become events of the core, and replies become responses.

There is one module for each family of APIs.
"""
