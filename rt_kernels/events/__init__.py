"""Finds events of a run: contact, capture, separation."""
