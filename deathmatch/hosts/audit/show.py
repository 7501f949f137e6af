"""How values of facts are shown in the report."""

from collections.abc import Callable, Iterable


def share(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.3g} %"


def yes_or_no(value: bool) -> str:
    """Return "yes" or "no"."""
    return "yes" if value else "no"


def on_or_off(value: bool) -> str:
    """Return "on" or "off"."""
    return "on" if value else "off"


def count(number: int) -> str:
    """Return a number with separators of thousands."""
    return f"{number:,}"


def giga(form: str) -> Callable[[float], str]:
    """Return a function that shows values in thousands of millions, in this format."""
    return lambda value: f"{value / 1e9:{form}}"


def listed(items: Iterable[str]) -> str:
    """Return items joined by commas."""
    return ", ".join(items) or "none"
