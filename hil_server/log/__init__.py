"""Logs: records, header, moments; written, read on demand, read whole."""
