"""One test, or a programme of them: prepare, arm, run, stop, report; and a logged run again."""
