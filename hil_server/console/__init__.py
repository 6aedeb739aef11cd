"""The console: web pages over the bus of a run, and over its log afterwards. A reader that can never delay the loop."""
