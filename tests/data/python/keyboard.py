"""Everything about the keyboard on the screen."""

from __future__ import annotations

import asyncio
from functools import lru_cache, wraps

MAX_TRIES = 3


class Keyboard(Base):
    """Shows and hides."""

    def __init__(self, context: Context, size: int = 2) -> None:
        self.context = context
        self.size = size

    @property
    def visible(self) -> bool:
        return self.context.state is State.VISIBLE

    @staticmethod
    @lru_cache(maxsize=None)
    def layout(name: str) -> dict[str, Key]:
        # rows come from the file
        return parse(open_file(name, mode="rb"))

    async def hide(self, view, /, *, tries=MAX_TRIES):
        """Hides the soft keyboard.

        :param view: the view that has the focus
        :returns: whether it was hidden
        """
        manager = self.context.get_system_service("input_method")  # ask the system
        async with manager.lock:
            await asyncio.sleep(0.1)
            return await manager.hide_soft_input(view.token, *self.flags)

    class Row:
        def width(self):
            return 1


# Runs it again
# until it succeeds.
def retry(times, *args, **options):
    def decorate(function):
        @wraps(function)
        def wrapper(*inner):
            return function(*inner, "again")

        return wrapper

    return decorate


def make():
    class Local:
        def method(self):
            return "deep"

    return Local


def describe(command):
    match command:
        case {"key": str(key)}:
            return f"key {key!r} of {len(command)} is pressed"
        case [Point(x=0), *rest]:
            return rest
        case _:
            return 'nothing' "much"


def pick(keys):
    return sorted(keys, key=lambda entry: entry.label)[0]


def größe(höhe):
    r"""Die Größe."""
    return höhe * FAKTOR


def nothing(): ...
