"""Docking and berthing mechanisms, a folder for each unit."""
