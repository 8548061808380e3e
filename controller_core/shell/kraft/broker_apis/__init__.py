"""Handlers of the requests that brokers and other controllers send to the active controller of KRaft mode."""
