"""Rows from CSV, JSON-lines and Parquet files, each with its place; values stay the text that they are in the file."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmark.declarations import FileSource
from benchmark.errors import UserError, first_line, nearest


class Row(NamedTuple):
    """One example and the place it was read from, as ``file:line``."""

    text: str
    label: str
    place: str


_DOUBLED = 'write a quote that is part of a text as "" within quotes'

# From a file and the columns wanted to records, each with its line.
_Reader = Callable[[Path, tuple[str, ...]], Iterator[tuple[int, dict[str, Any]]]]

# A label, the values of the columns that it was joined of, and where it was read first.
Joined = dict[str, tuple[tuple[str, ...], str]]


def read_files(source: FileSource, folder: Path) -> dict[str, list[Row]]:
    """The rows of each split that the source names files for; several files of a split follow each other by name."""
    patterns = {"train": source.train, "validation": source.validation, "test": source.test}
    joined: Joined = {}
    return {split: _split(source, folder, names, joined) for split, names in patterns.items() if names}


def _split(source: FileSource, folder: Path, patterns: tuple[str, ...], joined: Joined) -> list[Row]:
    rows: list[Row] = []
    for pattern in patterns:
        try:
            paths = sorted(path for path in folder.glob(pattern) if path.is_file())
        except (ValueError, IndexError, NotImplementedError):
            raise UserError(
                f'{folder}: "{pattern}" is no name or pattern of files, which the entry of the data set needs.'
            ) from None
        if not paths:
            raise UserError(f'{folder}: no file "{pattern}", which the entry of the data set names.')
        for path in paths:
            rows.extend(read_rows(path, source.format, source.text, source.intent, source.delimiter, joined))
    if not rows:
        raise UserError(f"{folder}: {', '.join(patterns)}: no row in these files.")
    return rows


def read_rows(
    path: Path, kind: str, text: str, intent: tuple[str, ...], delimiter: str, joined: Joined | None = None
) -> Iterator[Row]:
    """The rows of one file.

    ``kind`` is "csv", "json_lines" or "parquet"; ``text`` and ``intent`` name columns (of several intent columns the
    values are joined by "_"; ``joined`` says of what the labels of other files were). Files are UTF-8, with or without
    a byte-order mark, whatever the locale. Raises UserError with file and line for a file that is not so, a missing
    column, a row of the wrong length or that swallows others, a row without a label, two labels that are joined alike.
    """
    joined = {} if joined is None else joined
    read_csv = partial(_read_csv, delimiter=delimiter)
    readers: dict[str, _Reader] = {"csv": read_csv, "json_lines": _read_json_lines, "parquet": _read_parquet}
    try:
        for line, record in readers[kind](path, (text, *intent)):
            place = f"{path}:{line}"
            parts = tuple(_as_text(record[column], column, place) for column in intent)
            if not "".join(parts).strip():
                raise UserError(f"{place}: this row has no label; give it one or take the row out.")
            label = "_".join(parts)
            before, there = joined.setdefault(label, (parts, place))
            if before != parts:
                raise UserError(
                    f'{place}: the labels {" + ".join(parts)} and {" + ".join(before)} ({there}) are both "{label}" '
                    "where they are joined; rename one."
                )
            yield Row(_as_text(record[text], text, place), label, place)
    except UnicodeDecodeError:
        raise UserError(f"{path}:{_line_that_is_not_utf8(path)}: this is not UTF-8; save the file as UTF-8.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None


def _line_that_is_not_utf8(path: Path) -> int:
    """Its number; a reader's own error counts from the start of what it had read at once."""
    content = path.read_bytes()
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return content[: error.start].count(b"\n") + 1
    return 1


def _no_column(column: str, columns: list[str]) -> str:
    hint = nearest(column, columns)
    every = f" The columns are: {', '.join(columns[:10])}{', ...' if len(columns) > 10 else '.'}"
    return f'there is no column "{column}"; {hint}{every if hint.endswith("?") else ""}'


def _separated_by(header: list[str], delimiter: str) -> str:
    """What separates the values; where they seem to be one value only, what else might."""
    other = next((mark for mark in ";\t|," if len(header) == 1 and mark in header[0]), None)
    if other is not None:
        return (
            f"Values are taken to be separated by {json.dumps(delimiter)}; name {json.dumps(other)} as the delimiter."
        )
    return f"Values are taken to be separated by {json.dumps(delimiter)}, and this line to be the header."


def _read_csv(path: Path, columns: tuple[str, ...], delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        last = 0
        try:
            header = next((values for values in reader if values), None)
            if header is None:
                raise UserError(f"{path} is empty; a header line is expected.")
            last = reader.line_num
            if any("\0" in name for name in header):
                raise UserError(f"{path}:{last}: this line has zero bytes, as UTF-16 does; save the file as UTF-8.")
            if header[0].startswith("sep="):
                raise UserError(
                    f"{path}:{last}: this line is a spreadsheet's note of its delimiter; take it out, and name that "
                    "delimiter instead."
                )
            for column in columns:
                if column not in header:
                    raise UserError(f"{path}:{last}: {_no_column(column, header)} {_separated_by(header, delimiter)}")
                if header.count(column) > 1:
                    raise UserError(f'{path}:{last}: {header.count(column)} columns are called "{column}"; rename one.')
            intents = [header.index(column) for column in columns[1:]]
            spanning: list[tuple[int, list[str]]] = []
            labels: Counter[tuple[str, ...]] = Counter()
            for values in reader:
                line, last = last + 1, reader.line_num
                if not values:
                    continue
                if len(values) != len(header):
                    raise UserError(
                        f"{path}:{line}: {len(values)} values where the header names {len(header)} columns."
                    )
                if last > line:
                    spanning.append((line, values))
                labels[tuple(values[place] for place in intents)] += 1
                yield line, dict(zip(header, values, strict=True))
            _check_quoted(path, spanning, intents, labels, delimiter)
        except csv.Error as error:
            if str(error) == "unexpected end of data":
                raise UserError(
                    f"{path}:{last + 1}: a quote that a value begins with here is never closed; {_DOUBLED}."
                ) from None
            raise UserError(f"{path}:{reader.line_num}: this is not CSV: {error}.") from None


def _check_quoted(
    path: Path,
    spanning: list[tuple[int, list[str]]],
    columns: list[int],
    labels: Counter[tuple[str, ...]],
    delimiter: str,
) -> None:
    """Refuse a row of several lines that all look like rows, each with a label (in ``columns``) that other rows have: a
    quote that nothing closes takes in all up to the next one. Where numbers are the labels only tabs tell, for a number
    after a comma stands in texts, too.
    """
    for line, values in spanning:
        parts = [part.split(delimiter) for part in delimiter.join(values).splitlines()]
        found = [tuple(part[place] for place in columns) for part in parts if len(part) == len(values)]
        own = tuple(values[place] for place in columns)
        elsewhere = all(labels[label] > (label == own) for label in found)
        numbers = delimiter != "\t" and any("".join(label).strip().isdecimal() for label in found)
        if len(parts) > 1 and len(found) == len(parts) and elsewhere and not numbers:
            raise UserError(
                f"{path}:{line}: the quote that a value begins with here is closed {len(parts) - 1} lines further "
                f"down, after what looks like other rows; {_DOUBLED}."
            )


def _read_json_lines(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, Any]]]:
    # newline="\n": a line ends there only, not at U+2028 or a lone carriage return inside a text
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for line, content in enumerate(file, start=1):
            if line == 1 and content.lstrip().startswith("["):
                raise UserError(
                    f'{path}: this is a JSON array; write one object a line (pandas: to_json(..., orient="records", '
                    "lines=True))."
                )
            if not content.strip():
                continue
            try:
                record = json.loads(content, object_pairs_hook=_without_repeats)
            except RecursionError:
                raise UserError(f"{path}:{line}: this line is nested too deeply.") from None
            except ValueError as error:
                raise UserError(f"{path}:{line}: this line is not JSON: {getattr(error, 'msg', error)}.") from None
            if not isinstance(record, dict):
                raise UserError(f"{path}:{line}: each line must be a JSON object.")
            for column in columns:
                if column not in record:
                    raise UserError(f'{path}:{line}: there is no key "{column}"; {nearest(column, record)}')
            yield line, record


def _read_parquet(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, Any]]]:
    # by Arrow itself: a data frame would make fractions of whole numbers where one of them is missing
    from pyarrow.lib import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in columns:
                if column not in names:
                    raise UserError(f"{path}: {_no_column(column, names)}")
                if names.count(column) > 1:
                    raise UserError(f'{path}: {names.count(column)} columns are called "{column}"; rename one.')
            records = file.read(columns=list(columns)).to_pylist()
    except OverflowError as error:  # a date, or a duration
        raise UserError(
            f"{path}: a value is none that Python can have ({first_line(error)}); give it as text."
        ) from None
    except (ArrowException, ValueError, KeyError) as error:
        raise UserError(f"{path}: this is not Parquet: {first_line(error)}.") from None
    yield from enumerate(records, start=1)


def _as_text(value: Any, column: str, place: str) -> str:
    """The text of a value; a whole number stands for its digits, anything else would be a guess."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UserError(f'{place}: "{column}": {value[error.start]!r} is half a character; repair it.') from None
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    try:
        shown = json.dumps(value)
    except TypeError:  # a date, say, which in quotes would look like text
        shown = f"{value} ({type(value).__name__})"
    raise UserError(f'{place}: "{column}" must be text, not {shown}.')


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f'the key "{repeated}" stands twice')
    return dict(pairs)
