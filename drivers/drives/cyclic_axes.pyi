# Generated from the built module by tools/generate_stubs.py
from typing import Any

class CyclicAxes:
    def configure(
        self,
        links: Any,
        nodes: Any,
        counts_per_metre: Any,
        zero_m: Any,
        control_word: int,
        blocking_word: int,
        feed_forward: bool,
        rate_window: int,
        no_data_periods: int,
        heartbeat_timeout_ns: int,
    ) -> Any: ...
    def listen(self, channels: Any) -> Any: ...
    def start(self, descriptors: Any, status_words: Any, positions: Any, first_values: Any = ...) -> Any: ...
    def begin(self) -> Any: ...
    def stop(self) -> Any: ...
    def counters(self) -> Any: ...
