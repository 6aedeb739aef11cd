"""Fixtures of the log and the bus."""

from tests.bus.conftest import loop_stand_in  # noqa: F401
from tests.log.conftest import header, make_records  # noqa: F401
