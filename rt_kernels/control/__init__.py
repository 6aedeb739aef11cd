"""Control: the actuators of both crafts. Guidance gives the wanted motion, dynamics integrate the wrenches."""
