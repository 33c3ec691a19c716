"""Exit statuses: an error ends a program with one line on stderr, never with a traceback."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from ncs.console import say
from ncs.errors import NcsError
from ncs.messages import OUT_OF_RANGE

FAILED, INTERRUPTED = 2, 130
P = ParamSpec("P")


def _wrong_option(error: Any, name: str) -> str:
    """The line for a wrong option: what typer says, but for a number out of range the message of all surfaces."""
    value, out_of_range, _ = error.message.partition(" is not in the range ")
    if out_of_range:
        least, most = error.param.type.min, error.param.type.max
        bound = f"at least {least}" if most is None else f"from {least} to {most}"
        return OUT_OF_RANGE.format(name="/".join(error.param.opts), value=value, bound=bound)
    command = getattr(getattr(error, "ctx", None), "command_path", name)
    text = error.format_message().rstrip(".").replace(" int range", " integer").replace(" float range", " number")
    return f"{text}; see {command} --help"


def main_program(name: str, interrupted: str = "") -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Decorates a main function that returns its exit status: an error is 2, ctrl-C is 130.

    name: the prefix of the line; interrupted: what to do after ctrl-C. A reader that has exited (head) is no error.
    A traceback is printed only for an error in the program itself.
    """

    def decorate(main: Callable[P, int]) -> Callable[P, int]:
        @wraps(main)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> int:
            try:
                status = main(*args, **kwargs)
                sys.stdout.flush()  # inside the try, for BrokenPipeError
                return status
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            except (NcsError, OSError) as error:
                line = str(error)
                if isinstance(error, OSError):
                    line = f"{error.filename or 'the system'}: {error.strerror or error}"
                if isinstance(error, FileNotFoundError) and not error.filename:  # from os.getcwd
                    line = "the working folder is gone; enter it again"
                if getattr(error, "errno", None) == errno.ENOSPC:  # of stdout; the writer of an index names its folder
                    line = "cannot write the output: the disk is full; free some space, or write it elsewhere"
                say(f"{name}: {' '.join(line.splitlines())}")
                return FAILED
            except Exception as error:
                if hasattr(error, "format_message"):  # an error of typer
                    say(f"{name}: {_wrong_option(error, name)}")
                    return FAILED
                if isinstance(error, MemoryError) or str(error) == "can't start new thread":
                    say(f"{name}: no memory or thread is left; end other programs, or raise the limits (ulimit -a)")
                    return FAILED
                if type(error).__module__.partition(".")[0] in ("typer", "click"):
                    raise
                traceback.print_exc()
                say(f"{name}: {type(error).__name__}: a mistake in {name}; please report it with the lines above")
                return FAILED
            except KeyboardInterrupt:
                say(f"{name}: interrupted; {interrupted}" if interrupted else f"{name}: interrupted")
                return INTERRUPTED

        return wrapper

    return decorate
