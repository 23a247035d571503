"""Where data of the user's own lie: files, or a data set of the hub."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from benchmark.data import fetch_hub_splits
from benchmark.errors import UserError

_FORMATS = {".csv": "csv", ".tsv": "csv", ".jsonl": "json_lines", ".json": "json_lines", ".parquet": "parquet"}
_HUB_ID = re.compile(r"(?P<id>\w[\w.-]*/\w[\w.-]*)(/(?P<config>\w[\w.-]*))?")


@dataclass(frozen=True)
class OwnFiles:
    """Where the rows are, and what they are called. Without test or validation file, rows of the training file are
    held out.
    """

    title: str
    train: Path
    validation: Path | None
    test: Path | None
    text: str
    label: str
    delimiter: str | None = None

    @property
    def paths(self) -> dict[str, Path]:
        """The files that are given, by split; a link stays a link, whatever it points to later."""
        given = {"train": self.train, "validation": self.validation, "test": self.test}
        return {
            split: Path(os.path.abspath(path))  # noqa: PTH100 (resolve follows links)
            for split, path in given.items()
            if path is not None
        }


def own_files(
    data: str, validation: str | None, test: str | None, text: str, label: str, delimiter: str | None, cache: Path
) -> OwnFiles:
    """Files by their paths; or, where ``data`` is no file but the id of a data set on the hub (owner/name, or
    owner/name/configuration), its split "train" and the splits that ``validation`` and ``test`` name, fetched into
    ``cache``.
    """
    if text == label:
        raise UserError(f'Text and label cannot both be the column "{text}".')
    hub = _HUB_ID.fullmatch(data)
    if hub and not Path(hub["id"]).parent.exists() and Path(data).suffix.lower() not in _FORMATS:
        if delimiter is not None:
            raise UserError("--delimiter is for a .csv or .tsv file, not for a data set of the hub; leave it out.")
        splits = {"train": "train", "validation": validation, "test": test}
        wanted = {role: split for role, split in splits.items() if split is not None}
        found = fetch_hub_splits(hub["id"], wanted, cache, hub["config"])
        return OwnFiles(data, found["train"], found.get("validation"), found.get("test"), text, label)
    paths = [None if path is None else Path(path) for path in (validation, test)]
    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")
        if len(delimiter) != 1 or delimiter in '"\r\n' or Path(data).suffix.lower() not in (".csv", ".tsv"):
            raise UserError("--delimiter is one character between the values of a .csv or .tsv file.")
    return OwnFiles(Path(data).stem, Path(data), paths[0], paths[1], text, label, delimiter)


def format_of(files: OwnFiles) -> str:
    """The one format of the files. UserError where one is not a file, or they differ."""
    found = {}
    for path in files.paths.values():
        if path.is_dir():
            raise UserError(f"{path} is a folder; name the file in it, and those of other splits by --test-data, ....")
        if not path.is_file():
            raise UserError(f"{path} is not a file.")
        if path.suffix.lower() not in _FORMATS:
            raise UserError(f"{path}: the ending must tell the format; known: {', '.join(_FORMATS)}.")
        found[path] = _FORMATS[path.suffix.lower()]
    if len({path.suffix.lower() for path in found}) > 1 and set(found.values()) != {"json_lines"}:
        raise UserError(f"{', '.join(map(str, found))} must have one format.")
    return found[files.paths["train"]]
