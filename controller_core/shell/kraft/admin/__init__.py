"""Requests of Admin clients to the controller of KRaft mode."""
