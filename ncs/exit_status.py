"""How a program ends: an error is one line on stderr and an exit status, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from ncs.errors import NcsError

FAILED, INTERRUPTED = 2, 130
P = ParamSpec("P")


def main_program(name: str, interrupted: str = "") -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Decorates a main function that returns its exit status: NcsError and OSError are 2, ctrl-C is 130.

    name: the prefix of the line; interrupted: what to do after ctrl-C. A reader that has exited (head) is no error.

    >>> @main_program("corpora")
    ... def main():
    ...     raise NcsError("there is no such corpus;\\nname another")
    >>> import contextlib
    >>> with contextlib.redirect_stderr(sys.stdout):
    ...     main()
    corpora: there is no such corpus; name another
    2
    """

    def decorate(main: Callable[P, int]) -> Callable[P, int]:
        @wraps(main)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> int:
            try:
                return main(*args, **kwargs)
            except NcsError as error:
                return _fail(name, " ".join(str(error).splitlines()), FAILED)
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            except OSError as error:
                return _fail(name, f"{error.filename or 'the system'}: {error.strerror or error}", FAILED)
            except KeyboardInterrupt:
                return _fail(name, f"interrupted; {interrupted}" if interrupted else "interrupted", INTERRUPTED)

        return wrapper

    return decorate


def _fail(name: str, line: str, status: int) -> int:
    sys.stderr.write(f"{name}: {line}\n")
    return status
