"""Force-torque sensors."""
