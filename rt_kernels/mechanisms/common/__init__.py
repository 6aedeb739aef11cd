"""What several docking units share."""
