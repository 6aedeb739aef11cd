"""What people and scripts ask of a run: commands and hand controllers, from the wire into the shared block."""
