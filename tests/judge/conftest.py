"""A run with closed-form contents, as a log (`tests/bouncing_run.py`)."""

from tests.bouncing_run import bounce, bounce_log, make_bounce, trip, trip_log, write_run  # noqa: F401
