"""From the ring to the file and to the bus: one process beside the server."""
