"""Stands in software: in process, or served over the wire."""
