"""What the three command lines share: their common options, the choice of a profile, exit codes."""

import argparse
import contextlib
import io
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from benchmark.errors import UserError, first_line
from benchmark.inputs import why_not_unicode
from benchmark.registry import EXPERIMENTS, Registry, load_registry
from benchmark.store import RESULTS

TABLES = Path(__file__).resolve().parents[1] / "tables"
_MOST_SEEDS = 10_000
DONE, SOME_FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
OUTPUT_CLOSED = 141  # as a shell says it of a command that ended because nobody reads it: 128 + SIGPIPE


def run_command(command: Callable[[argparse.Namespace], int], parser: argparse.ArgumentParser) -> None:
    """Parse, call, and exit: 0 done, 1 some runs failed, 2 the user's input is wrong (one sentence), 130
    interrupted, 141 nobody reads the output any more.
    """
    arguments = parser.parse_args()
    _refuse_repeated(parser, sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not know every sign of a table
            stream.reconfigure(errors="replace")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = command(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except UserError as error:
        _complain(f"error: {error}")
        code = WRONG_INPUT
    except KeyboardInterrupt:
        again = "makes all anew (--redo)" if getattr(arguments, "redo", False) else "goes on from here"
        _complain(f"interrupted; finished runs are kept, the same command {again}")
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader (head, less) has seen enough
        code = OUTPUT_CLOSED
    except MemoryError as error:
        _complain(f"error: this machine's memory does not suffice: {first_line(error)}")
        code = WRONG_INPUT
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        _complain(f"error: {place}{error.strerror or first_line(error)}; what was finished is kept")
        code = WRONG_INPUT
    sys.exit(code)


def _complain(sentence: str) -> None:
    """The exit code tells the rest where nobody can be told."""
    with contextlib.suppress(OSError):
        print(sentence, file=sys.stderr, flush=True)


def _refuse_repeated(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """An option said twice would quietly keep the last: all values belong to one."""
    known = {name for action in parser._actions for name in action.option_strings}
    names = [word.partition("=")[0] for word in given]
    for name in known:
        if names.count(name) > 1:
            parser.error(f"{name} is given twice; give it once, with everything that belongs to it")


def new_console() -> Console:
    """Where a command says how it goes."""
    console = _Console(highlight=False, soft_wrap=True, markup=False)
    if console.width < 1:  # of COLUMNS=0, with which rich prints nothing
        console.width = 80
    return console


class _Console(Console):
    """A reader that has seen enough (head, less) ends the command as ``run_command`` says."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def new_parser(command: str, description: str) -> argparse.ArgumentParser:
    """A parser that takes options as they are written: run_all.sh, which looks at some, knows no short forms."""
    return argparse.ArgumentParser(prog=f"python -m benchmark.{command}", description=description, allow_abbrev=False)


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Options of all three commands."""
    parser.add_argument(
        "--profile", help="which data sets, encoders and settings (default: paper where a GPU is visible, else demo)"
    )
    parser.add_argument(
        "--experiments", type=_folder, default=EXPERIMENTS, metavar="DIR", help="the registry (default: experiments/)"
    )
    parser.add_argument(
        "--results-dir", type=_folder, default=RESULTS, metavar="DIR", help="where results are (default: results/)"
    )


def _folder(text: str) -> Path:
    """A folder's path; the folder may be yet to be made."""
    if not text:
        raise argparse.ArgumentTypeError("nothing was given; a folder is needed")
    if problem := why_not_unicode(text):
        raise argparse.ArgumentTypeError(problem)
    if os.path.exists(text) and not os.path.isdir(text):  # noqa: PTH110, PTH112 - Path's own raise for a long name
        raise argparse.ArgumentTypeError(f"{text} is a file, not a folder")
    return Path(text)


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Options that say where data sets and encoders are."""
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folder of data sets in their publishers' layout (or BENCHMARK_DATA_DIR)"
    )
    parser.add_argument(
        "--encoder-dir",
        metavar="DIR",
        help="folder of model folders, looked into before the hub (or BENCHMARK_ENCODER_DIR)",
    )


def add_table_option(parser: argparse.ArgumentParser) -> None:
    """Which tables."""
    parser.add_argument(
        "--table", nargs="+", default=["all"], metavar="NAME", help="main, ablation, noise, ... or all (default)"
    )


def add_search_option(parser: argparse._ActionsContainer) -> None:
    """Which searches, in place of tables."""
    parser.add_argument(
        "--search", nargs="+", metavar="NAME", help="instead of tables: searches of searches.yaml, on validation rows"
    )


def asked_searches(arguments: argparse.Namespace) -> list[str]:
    """The searches asked for; UserError where tables are, too."""
    searches = listed_names("--search", arguments.search) or []
    if searches and arguments.table != ["all"]:
        raise UserError("--search stands in place of tables; leave out --table.")
    return searches


def add_output_option(parser: argparse._ActionsContainer) -> None:
    """Where tables and all that goes with them are written."""
    parser.add_argument(
        "--tables-dir", type=_folder, default=TABLES, metavar="DIR", help="where to write (default: tables/)"
    )


def next_command(module: str, options: str, arguments: argparse.Namespace) -> str:
    """The command that goes on from one that was given ``arguments``: in the same folders, where these are not those
    that are looked into anyway.
    """
    usual = {"experiments": EXPERIMENTS, "results_dir": RESULTS} | (
        {"tables_dir": TABLES} if module == "report" else {}
    )
    given = {name: getattr(arguments, name) for name in usual}
    others = [
        f" --{name.replace('_', '-')} {shlex.quote(str(folder))}"
        for name, folder in given.items()
        if folder.resolve() != usual[name].resolve()
    ]
    return f"python -m benchmark.{module} {options}{''.join(others)}"


def read_registry(folder: Path) -> Registry:
    """The registry; files of own entries that had to be left out are said."""
    registry = load_registry(folder)
    for mistake in registry.left_out.values():
        print(f"left out: {mistake}", file=sys.stderr)
    return registry


def split_list(values: Sequence[str] | None) -> list[str] | None:
    """The parts of a list option, however it was written: ``a b``, ``a,b``; None where it was not given."""
    if values is None:
        return None
    return [part for value in values for part in value.split(",") if part]


def listed_names(option: str, values: Sequence[str] | None) -> list[str] | None:
    """The parts of a list option, as ``split_list`` gives them. Raises UserError where it was given without any."""
    found = split_list(values)
    if found == []:
        raise UserError(f"{option}: at least one name is needed.")
    return found


def parse_seeds(values: Sequence[str] | None, default: Sequence[int]) -> list[int]:
    """Seeds from ``0 1 2``, ``0,1,2`` or ``0-4``; the profile's own where none are given."""
    parts = split_list(values)
    if parts is None:
        return list(default)
    found: list[int] = []
    for part in parts:
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise UserError(f'--seeds: "{part}" is no seed; write 0 1 2, or 0-4.')
        if len(last or first) > 10 or int(last or first) >= 2**31:
            raise UserError(f'--seeds: "{part[:40]}" goes beyond 2147483647, the largest seed.')
        if int(last or first) - int(first) >= _MOST_SEEDS:
            raise UserError(f'--seeds: "{part}" are too many; at most {_MOST_SEEDS:,} at a time.')
        found += range(int(first), int(last or first) + 1)
    if not found:
        raise UserError("--seeds: at least one whole number is needed.")
    return list(dict.fromkeys(found))


def choose_profile(asked: str | None, gpu_visible: Callable[[], bool]) -> tuple[str, str]:
    """The profile and, in words, why: the one asked for, ``paper`` where a GPU is visible, ``demo`` where none is."""
    if asked is not None:
        return asked, "as asked"
    if gpu_visible():
        return "paper", "a GPU is visible"
    return "demo", "no GPU is visible"


def headline(registry: Registry, profile_name: str, why: str, time: str) -> str:
    """What every command says first: which profile, why, how long, and how to choose another."""
    others = ", ".join(name for name in registry.profiles if name != profile_name)
    return f"Profile {profile_name} ({why}): {time}. Choose another with --profile: {others}."


def _interrupt(signal_number: int, frame: object) -> None:
    raise KeyboardInterrupt
