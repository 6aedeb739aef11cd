"""The configuration of a test: strict TOML in (`loader`), a checked document and frozen classes out (`model`), every fault named."""

from hil_server.config.checks import check_part, part_table
from hil_server.config.files import SHIPPED, named_file
from hil_server.config.loader import load_test, parse_override, test_from_toml
from hil_server.config.model import TestConfig
from hil_server.config.physics import criticality, mounting_poses, pose

__all__ = [
    "SHIPPED",
    "TestConfig",
    "check_part",
    "criticality",
    "load_test",
    "mounting_poses",
    "named_file",
    "parse_override",
    "part_table",
    "pose",
    "test_from_toml",
]
