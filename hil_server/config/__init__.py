"""The configuration of a test: strict TOML in, plain checked dictionaries out, every fault named. See `loader`."""

from hil_server.config.loader import SHIPPED, TestConfig, load_test, named_file, parse_override, test_from_toml
from hil_server.config.parts import check_part, part_table
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
