"""The central (probe-cone) docking unit."""
