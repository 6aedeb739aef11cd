"""Logs for other tools, and what others recorded: views, exports, imports."""
