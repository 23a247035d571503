"""Fetching a data set from its publisher, once, into the project's cache."""

import fnmatch
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmark.declarations import Dataset, Download, FileSource, HubDownload
from benchmark.errors import UserError, first_line
from benchmark.whole_files import place_folder

_SECONDS_WITHOUT_AN_ANSWER = 60
_RETRIES = 2
# No file of these data sets is anywhere near it; an archive that unpacks to more is not the publisher's.
_LARGEST_MEMBER = 500 * 2**20


def fetch_dataset(name: str, dataset: Dataset, cache: Path) -> Path:
    """Download the files of a data set into its folder below ``cache`` and return that folder.

    The folder appears only when all is there. Raises UserError where the publisher cannot be reached, or what came is
    not what was declared (checksum, archive members).
    """
    assert isinstance(dataset.source, FileSource)
    assert dataset.publisher is not None, "only what a publisher has can be fetched"
    target = cache / dataset.source.folder
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        content = Path(temporary) / "content"
        for index, download in enumerate(dataset.publisher.downloads):
            archive = _download(name, download, Path(temporary), f"download{index}")
            if download.save_as is not None:
                _place(archive, content / download.save_as)
            else:
                _unpack(name, archive, download.members or {}, content)
        for split in dataset.publisher.hub:
            _from_hub(name, split, content)
        place_folder(content, target)
    return target


def fetch_hub_splits(hub_id: str, splits: Mapping[str, str], cache: Path, config: str | None = None) -> dict[str, Path]:
    """Splits of a data set of the hub (role to the hub's name), in one of its configurations, as Parquet files in a
    folder of its current revision below ``cache``; what is there already is not fetched again, and without a network
    the newest one there that has them all is taken.

    Raises UserError where the hub cannot be reached or has no such data set, configuration or split.
    """
    name = hub_id if config is None else f"{hub_id}/{config}"
    files = [Path(config or "") / f"{split}.parquet" for split in splits.values()]
    revision = _hub_folder(name, hub_id, cache / "hub" / hub_id.replace("/", "--"), files)
    folder = revision if config is None else revision / config
    paths = {}
    for role, split in splits.items():
        path = folder / f"{split}.parquet"
        if not path.is_file():
            with tempfile.TemporaryDirectory(dir=_made(folder)) as temporary:
                download = HubDownload(id=hub_id, revision=revision.name, config=config, split=split, save_as=path.name)
                _from_hub(name, download, Path(temporary))
                (Path(temporary) / path.name).rename(path)
        paths[role] = path
    return paths


def _hub_folder(name: str, hub_id: str, parent: Path, files: Iterable[Path]) -> Path:
    """The folder of the data set's current revision, or where the hub does not answer the newest with all ``files``;
    ``name`` is what the user calls it.
    """
    from huggingface_hub import HfApi

    try:
        revision = HfApi().dataset_info(hub_id).sha
    except Exception as error:  # the hub's errors and those of the client below it have no class in common
        revisions = sorted(parent.iterdir(), key=lambda path: path.stat().st_mtime) if parent.is_dir() else []
        whole = [folder for folder in revisions if all((folder / file).is_file() for file in files)]
        if whole:
            return whole[-1]
        raise UserError(
            f'"{name}" is not a file here, and the hub has no such data set or cannot be reached '
            f"({type(error).__name__})."
        ) from None
    return parent / str(revision)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _download(name: str, download: Download, folder: Path, file_name: str) -> Path:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    downloader = pooch.HTTPDownloader(timeout=_SECONDS_WITHOUT_AN_ANSWER)
    for attempt in range(_RETRIES + 1):
        try:
            known_hash = f"sha256:{download.sha256}" if download.sha256 else None
            return Path(pooch.retrieve(download.url, known_hash, fname=file_name, path=folder, downloader=downloader))
        except OSError as error:  # which those of requests are, too
            if attempt == _RETRIES:
                raise UserError(
                    f'The data set "{name}" could not be fetched from {download.url} ({type(error).__name__}). '
                    "Fetch it by hand and give its folder by --data-dir."
                ) from None
        except ValueError:
            raise UserError(
                f'The data set "{name}": what {download.url} sent is not the file that was published '
                "(its SHA-256 differs)."
            ) from None
    raise AssertionError("unreachable: the last attempt returns or raises")


def _from_hub(name: str, download: HubDownload, content: Path) -> None:
    """Save one split as Parquet, class labels as their names."""
    import datasets

    datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(download.id, download.config, revision=download.revision, split=download.split)
    except Exception as error:  # of every kind, for datasets' own have no class in common
        raise UserError(
            f'The data set "{name}" could not be fetched from the hub ({download.id}): {first_line(error)}.'
        ) from None
    for column, feature in rows.features.items():
        if isinstance(feature, datasets.ClassLabel):
            numbers = rows[column]
            if any(number is None or not 0 <= number < len(feature.names) for number in numbers):
                raise UserError(
                    f'The data set "{name}": in split {download.split} of {download.id}, column {column} has rows '
                    "without a label; declare a split whose rows are labelled."
                )
            names = [feature.names[number] for number in numbers]
            rows = rows.remove_columns(column).add_column(column, names)
    path = content / download.save_as
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.to_parquet(path)


def _unpack(name: str, archive: Path, members: dict[str, str], content: Path) -> None:
    """Take the named members out of a zip archive, each to a place decided here, whatever paths the archive holds."""
    try:
        with zipfile.ZipFile(archive) as opened:
            for pattern, target in members.items():
                found = [
                    info
                    for info in opened.infolist()
                    if fnmatch.fnmatchcase(info.filename, pattern) and not info.is_dir()
                ]
                if not found:
                    raise UserError(f'The data set "{name}": the archive holds no "{pattern}".')
                for info in found:
                    if info.file_size > _LARGEST_MEMBER:
                        raise UserError(
                            f'The data set "{name}": "{info.filename}" is too large to be what was published.'
                        )
                    file_name = info.filename.rpartition("/")[2]
                    path = content / target / file_name if target.endswith("/") else content / target
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with opened.open(info) as packed, path.open("wb") as plain:
                        shutil.copyfileobj(packed, plain)
    except zipfile.BadZipFile:
        raise UserError(f'The data set "{name}": what was fetched is not a zip archive.') from None


def _place(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)
