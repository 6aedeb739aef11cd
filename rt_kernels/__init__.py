"""What runs in a tick, and its set-up."""
