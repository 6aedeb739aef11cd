"""Ports: what touches the world, and stands in software that take its place."""
