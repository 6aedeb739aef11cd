"""The verbs of `hil-server`, one module each: `add_arguments(parser)` and `run(args)`. They parse and print; the work is done elsewhere."""
