"""What several verbs share at the terminal: arguments, tables, the summary of a run for people. Light to import: the help needs it."""
