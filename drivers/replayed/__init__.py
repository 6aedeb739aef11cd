"""A port that plays the inputs of a log."""
