"""Contact wrench from the readings of the sensor."""
