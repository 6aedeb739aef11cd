"""Parts of a page of which each may fail by itself: what fails is named with its reason, and costs no other."""

from collections.abc import Callable, Sequence

from hil_server.errors import reason_of
from hil_server.pages.curves import Plot, embedded
from hil_server.pages.html import section, text


def guarded(title: str, make: Callable[[], Sequence[str]], alone: bool = True) -> list[str]:
    """The elements that `make` gives, as HTML; where it fails, a section (alone) or a line that names them and the reason."""
    try:
        return list(make())
    except Exception as error:
        line = not_available(title, error)
        return [section(title, line) if alone else line]


def not_available(what: str, error: Exception) -> str:
    """The line that stands in place of a figure."""
    return f'<p class="banner">{text(what)}: not available: {text(reason_of(error))}.</p>'


def drawn(*topics: tuple[str, Callable[[], Sequence[Plot]]]) -> str:
    """Plots as HTML, topic by topic: (name, what makes its plots)."""
    found = []
    for name, make in topics:
        found += guarded(name, lambda make=make: [embedded(one) for one in make()], alone=False)  # type: ignore[misc]
    return "".join(found)
