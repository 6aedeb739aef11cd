"""A run in other people's viewers: Foxglove and rerun, from a file or live."""
