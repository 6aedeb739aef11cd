"""Control: what the crafts' own actuators do, both crafts; the guidance says what is wanted, the dynamics say what comes of it."""
