"""An input module in software, written from CiA 401: digital inputs 0x6000 in groups of eight, analogue inputs 0x6401 of 16 bits."""

from tests.drivers.peers.canopen_device import Entry, Node

CHAIN_HEALTHY = 24  # digital input, from 0


class InputModule(Node):
    """32 digital and 8 analogue inputs, 16 digital outputs. Only the input of a healthy emergency chain is on."""

    def __init__(self, number: int) -> None:
        super().__init__(number, 0x000F0191)
        self.add(0x6000, 0, Entry(8, 4, writable=False))
        for group in range(1, 5):
            self.add(0x6000, group, Entry(8, writable=False, mappable=True))
        self.add(0x6200, 0, Entry(8, 2, writable=False))
        for group in (1, 2):
            self.add(0x6200, group, Entry(8, mappable=True))
        self.add(0x6401, 0, Entry(8, 8, writable=False))
        for channel in range(1, 9):
            self.add(0x6401, channel, Entry(16, signed=True, writable=False, mappable=True))
        self[0x6000, CHAIN_HEALTHY // 8 + 1] = 1 << CHAIN_HEALTHY % 8
