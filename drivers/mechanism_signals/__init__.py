"""Signals of a real docking mechanism: a CANopen module of CiA 401."""
