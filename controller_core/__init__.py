"""The controller: a pure core (model, rules, decisions, ZooKeeper mode, views) and the shell that runs it."""
