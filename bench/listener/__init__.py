"""Load on the controller's listener: hostile requests, the server that receives them, and its measurements."""
