"""Where a pretrained encoder's files are: a folder at hand, the hub's cache, or built on the spot. Does not import
torch.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmark.declarations import BuiltSource, Encoder, PretrainedSource
from benchmark.errors import UserError, first_line
from benchmark.specs import canonical
from benchmark.whole_files import write_whole

# What is fetched and what counts as content: configuration, tokenizer, safetensors weights. Never pickled weights,
# never code.
FILE_PATTERNS = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "*.model",
    "model.safetensors",
    "model-*-of-*.safetensors",
    "model.safetensors.index.json",
)
# One of these at least makes a tokenizer; without any, transformers would make one that knows no word. But those of
# characters or bytes need none.
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_WITHOUT_VOCABULARY = frozenset({"ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer"})
# Raise this number whenever the same declaration would build another tiny encoder.
BUILD_VERSION = 1


@dataclass(frozen=True)
class FoundEncoder:
    """An encoder's files on this machine; ``revision`` is the hub's commit where it is known."""

    folder: Path
    origin: Literal["folder", "hub", "built"]
    revision: str | None


def find_encoder(encoder: Encoder, folders: Iterable[Path], build_folder: Path) -> FoundEncoder | None:
    """The encoder's files on this machine, without the network; None where they are not here.

    Looked for in this order: a model folder below one of ``folders`` (by the declared folder names, then the id, then
    the id's last part), the hub's cache. A built encoder's place is below ``build_folder``, whether it has been built
    yet or not.
    """
    if isinstance(encoder.source, BuiltSource):
        return FoundEncoder(build_folder / built_fingerprint(encoder)[:16], "built", None)
    names = (*encoder.source.folders, encoder.source.id, encoder.source.id.rpartition("/")[2])
    for parent in folders:
        for name in names:
            if (parent / name / "config.json").is_file():
                _require_whole(parent / name)
                return FoundEncoder(parent / name, "folder", None)
    return _find_in_hub_cache(encoder.source)


def fetch_encoder(source: PretrainedSource) -> FoundEncoder:
    """Download the encoder at its declared revision into the hub's cache (files already there are not fetched again).

    Weights come last, for what has them counts as fetched. Raises UserError where the hub cannot be reached, has no
    such model or revision, or only pickled weights.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        for patterns in ([name for name in FILE_PATTERNS if "safetensors" not in name], list(FILE_PATTERNS)):
            folder = snapshot_download(source.id, revision=source.revision, allow_patterns=patterns)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise UserError(
            f"{source.id} (revision {source.revision}) could not be fetched from the hub: {first_line(error)}. Put a "
            "copy of it into a folder and name that folder by --encoder-dir or BENCHMARK_ENCODER_DIR."
        ) from None
    _require_whole(Path(folder))
    return FoundEncoder(Path(folder), "hub", Path(folder).name)  # the hub's cache names a snapshot by its commit


def content_files(folder: Path) -> list[Path]:
    """The files of a model folder that make up its content, by name."""
    return sorted({path for pattern in FILE_PATTERNS for path in folder.glob(pattern) if path.is_file()})


def built_fingerprint(encoder: Encoder) -> str:
    """The fingerprint of a built encoder, which follows from its declaration alone."""
    assert isinstance(encoder.source, BuiltSource)
    recipe = f"{BUILD_VERSION} {canonical(encoder.source)} {canonical(encoder.size)}"
    return hashlib.sha256(recipe.encode()).hexdigest()


def encoder_fingerprint(found: FoundEncoder, encoder: Encoder, hashes: "FileHashes") -> str:
    """SHA-256 over name and content of every file that makes up the encoder, and a tokenizer class if one is
    declared; of a built encoder that of its declaration.
    """
    if found.origin == "built":
        return built_fingerprint(encoder)
    digest = hashlib.sha256()
    if isinstance(encoder.source, PretrainedSource) and encoder.source.tokenizer_class is not None:
        digest.update(f"{encoder.source.tokenizer_class}\n".encode())
    for path in content_files(found.folder):
        digest.update(f"{path.name} {hashes.sha256(path)}\n".encode())
    return digest.hexdigest()


class FileHashes:
    """SHA-256 of large files, remembered by path and what the file system says of the file, so that weights are read
    once and not at every plan. Size and time of modification are not enough: copies may keep both.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changed = False
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self.known: dict[str, dict[str, object]] = known if isinstance(known, dict) else {}

    def sha256(self, path: Path) -> str:
        real = path.resolve()
        status = real.stat()
        state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        entry = self.known.get(str(real))
        if isinstance(entry, dict) and entry.get("state") == state and isinstance(entry.get("sha256"), str):
            return str(entry["sha256"])
        with real.open("rb") as file:
            value = hashlib.file_digest(file, "sha256").hexdigest()
        self.known[str(real)] = {"state": state, "sha256": value}
        self.changed = True
        return value

    def save(self) -> None:
        """Keep what was learnt; a cache that cannot be written only costs time."""
        if not self.changed:
            return
        with suppress(OSError):
            write_whole(self.path, json.dumps(self.known).encode("ascii"))


def missing_encoder_sentence(name: str, encoder: Encoder) -> str:
    """What to do where an encoder is not on this machine."""
    assert isinstance(encoder.source, PretrainedSource)
    folders = ", ".join(f'"{folder}"' for folder in (*encoder.source.folders, encoder.source.id.rpartition("/")[2]))
    return (
        f'The encoder "{name}" ({encoder.source.id}) is not on this machine: fetch it with '
        "`python -m benchmark.prepare` and the same --profile, or give a folder of model folders by --encoder-dir or "
        f"BENCHMARK_ENCODER_DIR; it is looked for there under {folders}, with config.json and model.safetensors."
    )


def _find_in_hub_cache(source: PretrainedSource) -> FoundEncoder | None:
    # by hand rather than through huggingface_hub, whose import would cost a report more than the rest of its work
    repository = hub_cache() / f"models--{source.id.replace('/', '--')}"
    reference = repository / "refs" / source.revision
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else source.revision
    folder = repository / "snapshots" / commit
    if not (folder / "config.json").is_file() or not _has_safetensors(folder) or not _has_tokenizer(folder):
        return None
    return FoundEncoder(folder, "hub", commit)


def hub_cache() -> Path:
    """Where huggingface_hub keeps what it fetched, by its own variables."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = os.environ.get("HF_HOME", os.path.join(cache, "huggingface"))  # noqa: PTH118 - may begin with a variable
    older = os.environ.get("HUGGINGFACE_HUB_CACHE", os.path.join(home, "hub"))  # noqa: PTH118
    # Path's own expansion raises where there is no such user
    return Path(os.path.expanduser(os.path.expandvars(os.environ.get("HF_HUB_CACHE", older))))  # noqa: PTH111


def _has_safetensors(folder: Path) -> bool:
    """Whether all weights are here, in one file or in every part that the index names."""
    if (folder / "model.safetensors").is_file():
        return True
    try:
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
        parts = set(index["weight_map"].values())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False
    return bool(parts) and all((folder / str(part)).is_file() for part in parts)


def _has_tokenizer(folder: Path) -> bool:
    if any(path.is_file() for pattern in _TOKENIZERS for path in folder.glob(pattern)):
        return True
    try:
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        return settings["tokenizer_class"] in _WITHOUT_VOCABULARY
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _require_whole(folder: Path) -> None:
    if not _has_tokenizer(folder):
        raise UserError(f"{folder} has no tokenizer ({', '.join(_TOKENIZERS)}); add its file, or name another copy.")
    if any(folder.glob("model-*-of-*.safetensors")) and not _has_safetensors(folder):
        raise UserError(
            f"{folder} has not all parts of the weights, or no model.safetensors.index.json that names them; copy or "
            "fetch the rest."
        )
    if not _has_safetensors(folder):
        raise UserError(
            f"{folder} has no model.safetensors; pickled weights are never loaded, because loading them can run code. "
            "Convert them with the hub's safetensors conversion, or name another copy."
        )
