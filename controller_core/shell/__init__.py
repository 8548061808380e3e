"""The controller process: event loop, ZooKeeper store, channels to brokers, the front for clients."""
