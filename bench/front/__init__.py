"""Load on the controller's front: hostile requests, the server they are sent to, and its measurements."""
