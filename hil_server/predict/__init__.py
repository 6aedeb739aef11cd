"""What a test will do before it runs: its contact on the stand, what it may reach, what its crafts are."""
