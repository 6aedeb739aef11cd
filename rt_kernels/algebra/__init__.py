"""Vectors, rotations, quaternions, poses and spatial vectors; sine and cosine of our own."""
