"""Configurations of entities in ZooKeeper (`/config`), for the Admin requests that the controller answers itself.

Leaves out topics' and brokers' configurations: a broker alters these, since it knows its own defaults.
"""
