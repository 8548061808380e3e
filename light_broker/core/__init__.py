"""Pure part of the broker: values and decisions without sockets, files, clocks, tasks and logs."""
