"""Everything around the loop: configuration, runs, telemetry, analysis, console, command line."""
