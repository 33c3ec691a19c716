"""How a program's main function ends: what went wrong is one line on stderr and an exit status, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from ncs.errors import NcsError

FAILED, STOPPED = 2, 130
P = ParamSpec("P")


def ending(name: str, stopped: str = "") -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Decorates a main function that gives its exit status: NcsError and OSError are 2, ctrl-C is 130.

    name: what stands before the line; stopped: what to do after ctrl-C. A reader that left (head, less) is no error.

    >>> @ending("corpora")
    ... def main():
    ...     raise NcsError("there is no such corpus;\\nname another")
    >>> import contextlib
    >>> with contextlib.redirect_stderr(sys.stdout):
    ...     main()
    corpora: there is no such corpus; name another
    2
    """

    def decorated(main: Callable[P, int]) -> Callable[P, int]:
        @wraps(main)
        def ended(*args: P.args, **kwargs: P.kwargs) -> int:
            try:
                return main(*args, **kwargs)
            except NcsError as error:
                return _told(name, " ".join(str(error).splitlines()), FAILED)
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            except OSError as error:
                return _told(name, f"{error.filename or 'the system'}: {error.strerror or error}", FAILED)
            except KeyboardInterrupt:
                return _told(name, f"stopped; {stopped}" if stopped else "stopped", STOPPED)

        return ended

    return decorated


def _told(name: str, line: str, status: int) -> int:
    sys.stderr.write(f"{name}: {line}\n")
    return status
