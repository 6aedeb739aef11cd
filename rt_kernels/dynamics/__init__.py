"""Motion of the craft."""
