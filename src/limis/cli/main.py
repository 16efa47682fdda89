"""The `limis` command: reads the command line, runs a subcommand, and turns errors into one line."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

from limis import __version__
from limis.cli import audit, bench, demo, explain, fit, report, reproduce, serve, suggest
from limis.errors import LimisError

COMMANDS = (demo, fit, explain, suggest, report, audit, serve, reproduce, bench)

OK, INPUT_ERROR, INTERRUPTED, PIPE_CLOSED = 0, 1, 130, 141
# A question mark in place of a minus sign would be a wrong number.
PLAINER = {"\N{MINUS SIGN}": "-", "─": "-", "│": "|", "█": "#", "…": "~"}
EXAMPLES = """\
examples:
  limis demo                                            ten explanations of a model of incomes
  limis fit train.csv --target income -o income.limis   train a model and an explainer for it
  limis explain income.limis rows.csv -o out.parquet    explain rows
  limis suggest income.limis rows.csv --immutable age   what to change for another prediction
  limis report income.limis rows.csv -o report.html     all of it on one page
  limis audit income.limis test.csv -o audit.html       how far explanations can be believed
  limis serve income.limis rows.csv                     a web page and a REST interface

exit codes: 0 done; 1 something is wrong with the input; 2 something is wrong with the command line;
130 interrupted. LIMIS_DEBUG=1 in the environment shows where an error came from.
"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="limis",
        description="Explain the predictions of any tabular model, one row at a time, and say how far to trust it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"limis {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code comes back.

    Parameters
    ----------
    argv : sequence of str, default=None
        The words after ``limis``; those of the process when None.
    """
    for stream in (sys.stdout, sys.stderr):
        _never_refuse_a_character(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _one_line_warning
        try:
            args = build_parser().parse_args(argv)
            code: int = args.run(args)
            sys.stdout.flush()
        except SystemExit as stop:  # argparse has written its message
            return stop.code if isinstance(stop.code, int) else OK
        except KeyboardInterrupt:
            _say("interrupted")
            return INTERRUPTED
        except BrokenPipeError:
            # Whoever read the output wanted no more of it. Python would complain once more at its own end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return PIPE_CLOSED
        except Exception as error:  # a command ends with one line, never with a traceback
            if os.environ.get("LIMIS_DEBUG") == "1":
                raise
            _say(f"error: {_words(error)}")
            return INPUT_ERROR
    return code


def _words(error: Exception) -> str:
    if isinstance(error, LimisError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "there is not enough memory; use fewer rows"
    return f"unexpected {type(error).__name__}: {error} (this is a fault in limis; LIMIS_DEBUG=1 shows where)"


def _say(message: str) -> None:
    """One line on standard error, whatever the message holds."""
    print(f"limis: {' '.join(message.split())}", file=sys.stderr)


def _one_line_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"warning: {message}")


def _never_refuse_a_character(stream: TextIO) -> None:
    """A terminal that cannot show a character shows a plainer one instead of ending the program."""
    codecs.register_error("limis-plainer", _plainer)
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="limis-plainer")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    refused = error.object[error.start : error.end]
    return "".join(PLAINER.get(character, "?") for character in refused), error.end
