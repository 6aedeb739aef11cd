"""Configuration → the line: clock, ports and stages, the delays between them, where they start, and what the log must know of it."""
