"""Drives of the legs: CANopen axes of CiA 402 and CiA 408."""
