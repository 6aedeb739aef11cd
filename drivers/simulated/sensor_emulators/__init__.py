"""Force/torque sensors in software, each written from its public protocol; the stand that serves the wires runs one of them."""
