"""CAN frames as they are on the wire, without a library in between."""
