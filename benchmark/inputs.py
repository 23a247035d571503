"""Which of the declared data sets and encoders are on this machine, and what exactly they hold. Without torch."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.data import is_here, load_corpus, missing_sentence
from benchmark.declarations import FileSource, Table
from benchmark.encoders import FileHashes, encoder_fingerprint, find_encoder, missing_encoder_sentence
from benchmark.errors import UserError
from benchmark.registry import Inputs, Registry, encoder_name, table_subjects

CACHE = Path(__file__).resolve().parents[1] / ".cache"


@dataclass(frozen=True)
class Places:
    """Where inputs are looked for: folders of data sets, folders of encoders (first match wins), and the project's
    own cache.
    """

    data_folders: tuple[Path, ...]
    encoder_folders: tuple[Path, ...]
    cache: Path

    @property
    def built_encoders(self) -> Path:
        return self.cache / "encoders"

    @property
    def file_hashes(self) -> Path:
        return self.cache / "fingerprints.json"

    @property
    def fetched_data(self) -> Path:
        return self.cache / "data"

    @property
    def all_data_folders(self) -> tuple[Path, ...]:
        """The user's folders, then what was fetched."""
        return (*self.data_folders, self.fetched_data)


def places(data_folder: str | None, encoder_folder: str | None, cache: Path | None = None) -> Places:
    """Places from command-line options, else from BENCHMARK_DATA_DIR, BENCHMARK_ENCODER_DIR and BENCHMARK_CACHE_DIR.

    Raises UserError for a folder that is named and not there; the cache is made where it is not.
    """
    cache = cache or _cache(os.environ.get("BENCHMARK_CACHE_DIR"))
    return Places(
        _named_folder(data_folder, "--data-dir", "BENCHMARK_DATA_DIR"),
        _named_folder(encoder_folder, "--encoder-dir", "BENCHMARK_ENCODER_DIR"),
        cache.resolve(),
    )


def why_not_unicode(path: str) -> str | None:
    """Why a path can neither be handed on to workers nor stand in a result, and what to do; None where it can."""
    try:
        path.encode()
    except UnicodeEncodeError:
        pass
    else:
        return None
    try:
        os.fsencode(path).decode()
    except UnicodeDecodeError:
        return f"{path!a} is not Unicode; rename that folder"
    return f"{path!a} cannot be read in this locale; set PYTHONUTF8=1"


@dataclass(frozen=True)
class FoundInputs:
    """Fingerprints of what is here, and a sentence for each input that is not."""

    inputs: Inputs
    missing: dict[str, str] = field(default_factory=dict)  # "data set tnews" or "encoder x" to what to do


def find_table_inputs(registry: Registry, profile_name: str, tables: Iterable[Table], where: Places) -> FoundInputs:
    """Look for the data sets and encoders that tables need in a profile. Raises UserError as ``find_inputs`` does."""
    profile = registry.profile(profile_name)
    subjects = [subject for table in tables for subject in table_subjects(registry, table)]
    return find_inputs(
        registry,
        [profile.datasets[subject.dataset] for subject in subjects],
        [name for subject in subjects if (name := encoder_name(profile, subject.dataset, subject.encoder)) is not None],
        where,
    )


def find_inputs(registry: Registry, datasets: Iterable[str], encoders: Iterable[str], where: Places) -> FoundInputs:
    """Look for data sets and encoders by registry name and take their fingerprints; fetches nothing.

    Raises UserError for an input that is here but wrong (a file that cannot be read, a row without a label, sizes
    that differ).
    """
    hashes = FileHashes(where.file_hashes)
    found_datasets: dict[str, str | None] = {}
    found_encoders: dict[str, str | None] = {}
    missing = {}
    for name in dict.fromkeys(datasets):
        dataset = registry.datasets[name]
        if is_here(dataset, where.all_data_folders):
            found_datasets[name] = load_corpus(name, dataset, where.all_data_folders).fingerprint
        else:
            missing[f"data set {name}"] = missing_sentence(name, dataset)
            found_datasets[name] = None
    for name in dict.fromkeys(encoders):
        encoder = registry.encoders[name]
        found = find_encoder(encoder, where.encoder_folders, where.built_encoders)
        if found is None:
            missing[f"encoder {name}"] = missing_encoder_sentence(name, encoder)
            found_encoders[name] = None
        else:
            found_encoders[name] = encoder_fingerprint(found, encoder, hashes)
    hashes.save()
    return FoundInputs(Inputs(found_datasets, found_encoders), missing)


@dataclass(frozen=True)
class Since:
    """What became of the user's own data sets since results were made of them: those whose files hold something else by
    now; those that cannot be read any more, and why; those that are not here.
    """

    changed: list[str]
    unreadable: dict[str, str]
    absent: list[str]


def changed_since(registry: Registry, shown: Inputs, where: Places) -> Since:
    """What became of the data sets that are shown, of those of the user's own; a publisher's do not change."""
    since = Since([], {}, [])
    for name, fingerprint in shown.datasets.items():
        dataset = registry.datasets.get(name)
        if dataset is None or dataset.publisher is not None or not isinstance(dataset.source, FileSource):
            continue
        try:
            found = find_inputs(registry, [name], [], where).inputs.datasets[name]
        except UserError as error:
            since.unreadable[name] = str(error)
            continue
        if found is None:
            since.absent.append(name)
        elif found != fingerprint:
            since.changed.append(name)
    return since


def _cache(named: str | None) -> Path:
    if not named:
        return CACHE
    folder = _expanded(named, "BENCHMARK_CACHE_DIR")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"BENCHMARK_CACHE_DIR: {named} is a file, not a folder.")
    return folder


def _expanded(value: str, name: str) -> Path:
    if problem := why_not_unicode(value):
        raise UserError(f"{name}: {problem}.")
    return Path(os.path.expanduser(value))  # noqa: PTH111 - Path's own raises where there is no such user


def _named_folder(option: str | None, option_name: str, variable: str) -> tuple[Path, ...]:
    value, name = (os.environ.get(variable), variable) if option is None else (option, option_name)
    if option == "":
        raise UserError(f"{option_name}: nothing was given; a folder is needed.")
    if not value:
        return ()
    folder = _expanded(value, name)
    if not folder.is_dir():
        raise UserError(f"{name}: {value} is not a folder.")
    return (folder.resolve(),)
