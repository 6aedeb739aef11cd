"""This machine: which build is installed, and what the host gives a loop in real time."""
