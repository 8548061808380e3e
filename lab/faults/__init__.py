"""Faults between processes: proxies that cut, delay or repeat, networks that part, and disks that become slow."""
