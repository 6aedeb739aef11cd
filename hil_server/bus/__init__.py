"""Beside the server: the process that empties the ring into the log, and the bus for clients and desks."""
