"""Names of the table's codes, bits and faults for numbers, and back (`rt_kernels.layout` has the lists themselves)."""

from rt_kernels.layout import BITS, CODES, FAULTS, RUNS, WORDS

FAULT_MASKS: dict[str, int] = {name: fault for name, fault, *_ in FAULTS}
STOP_FAULTS: int = sum(fault for _, fault, severity, *_ in FAULTS if severity == "stop")


def code_name(group: str, value: int) -> str:
    """Name of a code of the list `group`; the number as text where it has none."""
    return next((name for name, code in CODES[group].items() if code == value), str(value))


def bit_names(group: str, word: int) -> list[str]:
    """Names of the bits set in a word of the list `group`, in the order of the table."""
    return [name for name, mask in BITS[group].items() if int(word) & mask]


def mask(group: str, *names: str) -> int:
    """The bits of these names together; a run of bits goes by its name without number."""
    together = 0
    for name in names:
        together |= RUNS.get(group, {}).get(name) or BITS[group][name]
    return together


def bit_number(group: str, name: str) -> int:
    """Place of a bit in its word, from 0."""
    return BITS[group][name].bit_length() - 1


def fault_names(word: int) -> list[str]:
    """Names of the faults set in a word of the field `faults`, in the order of the table."""
    return [name for name, fault in FAULT_MASKS.items() if int(word) & fault]


def words(field: str, value: int) -> str:
    """What a number of this field says: the name of its code, the names of its bits; the number where the table has no list for it."""
    kind, group = WORDS.get(field, ("", ""))
    if kind == "code":
        return code_name(group, value)
    if kind == "bits":
        return ", ".join(bit_names(group, value)) or "-"
    return str(value)
