"""The shipped configurations: stands, tests, programmes, vehicles, mechanisms, manipulators, models, schemas."""
