"""The shape of the entries in ``experiments/``: data sets, encoders, methods, metrics, tables, profiles."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from benchmark.specs import (
    Count,
    Declared,
    Head,
    Items,
    LossTerm,
    Name,
    NotNegative,
    Pair,
    Positive,
    Seed,
    Share,
    TemperatureScaling,
)

Text = Annotated[str, Field(min_length=1)]


def _stays_below(path: str) -> str:
    if not path or path.startswith(("/", "~")) or ".." in path.replace("\\", "/").split("/") or ":" in path:
        raise PydanticCustomError("below", "a path must be relative and may not leave its folder")
    return path


# A path, or a glob pattern, below a folder.
Below = Annotated[str, AfterValidator(_stays_below)]


# An id of the hub: a name, or an owner and a name.
HubId = Annotated[str, Field(pattern=r"^\w[\w.-]*(/\w[\w.-]*)?$")]


# --- data sets -------------------------------------------------------------------------------------------------------


class FileSource(Declared):
    """Text files in the publisher's own layout, below a folder of that name in the data folder."""

    kind: Literal["files"]
    folder: Below
    format: Literal["csv", "json_lines", "parquet"]
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    train: Items[Below] = Field(min_length=1)  # file names or glob patterns
    validation: Items[Below] = Field(default=())
    test: Items[Below] = Field(min_length=1)
    text: Text  # the column or key of the text
    intent: Items[Text] = Field(min_length=1)  # of the label; several are joined by "_"


class GeneratedSource(Declared):
    """A corpus made on the spot from a seed; what each setting does stands in ``data.generated``."""

    kind: Literal["generated"]
    labels: Annotated[int, Field(ge=2)]
    rows: dict[Literal["train", "validation", "test"], Count]
    label_shares: Items[Positive] | None = Field(default=None)
    words_per_text: Pair[Count]
    vocabulary: Count
    keywords_per_label: Count
    keyword_share: Share
    neighbour_share: Share
    confusion: Share
    seed: Seed


class ValidationRows(Declared):
    """How many training rows are held out for validation, drawn once from a seed of their own."""

    rows: Count
    seed: Seed


class ExpectedSizes(Declared):
    """Rows a split and labels that the files must have."""

    train: Count
    validation: Count
    test: Count
    labels: Count


class Download(Declared):
    """One file of the publisher. ``files``: what to take out of an archive (pattern: target folder or file name)."""

    url: Annotated[str, Field(pattern=r"^https?://")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    save_as: Below | None = None
    members: dict[Text, Below] | None = None

    @model_validator(mode="after")
    def _one_target(self) -> "Download":
        if (self.save_as is None) == (self.members is None):
            raise PydanticCustomError("target", 'say either "save_as" (a plain file) or "members" (of a zip archive)')
        return self


class HubDownload(Declared):
    """One split of a data set of the hub, saved as a Parquet file."""

    id: HubId
    revision: Text
    config: Text | None = None
    split: Text
    save_as: Below


class Publisher(Declared):
    """Who published a data set, under what terms, and where its files are: at addresses, or on the hub."""

    name: Text
    homepage: Text
    licence: Text
    downloads: Items[Download] = Field(default=())
    hub: Items[HubDownload] = Field(default=())


class Dataset(Declared):
    """One data set. ``labels``: names in order (an id may carry a name to show), or "sorted"."""

    label: Text
    source: Annotated[FileSource | GeneratedSource, Field(discriminator="kind")]
    labels: Literal["sorted"] | dict[Text, Text] = "sorted"
    validation: ValidationRows | None = None
    expected: ExpectedSizes | None = None
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    tokens_per_text: Positive  # for time estimates only
    publisher: Publisher | None = None


# --- encoders --------------------------------------------------------------------------------------------------------


class PretrainedSource(Declared):
    """A model of the hub, or folders of those names in the encoder folder, which are looked for first."""

    kind: Literal["pretrained"]
    id: HubId
    revision: Text
    folders: Items[Below] = Field(default=())
    tokenizer_class: Literal["BertTokenizer", "XLNetTokenizer", "AlbertTokenizer"] | None = None


class BuiltSource(Declared):
    """A tiny encoder with random weights, built on the spot for generated corpora."""

    kind: Literal["built"]
    architecture: Literal["bert", "albert", "xlnet", "electra", "roberta"]
    hidden: Count
    intermediate: Count
    heads: Count
    vocabulary: Count
    seed: Seed


class EncoderSize(Declared):
    """For time estimates before anything is loaded."""

    layers: Count
    hidden: Count
    intermediate: Count


class Encoder(Declared):
    """A text encoder; ``layers`` keeps only so many, counted from below."""

    label: Text
    source: Annotated[PretrainedSource | BuiltSource, Field(discriminator="kind")]
    layers: Count | None = None  # keep only so many, counted from below
    size: EncoderSize


# --- methods and metrics ---------------------------------------------------------------------------------------------


class Method(Declared):
    """A method is a composition: head, loss terms, post-hoc calibrator, each by its name in the registry."""

    label: Text
    head: Name
    loss: Items[Name] = Field(min_length=1)
    posthoc: Name | None = None
    source: Text


class MethodsFile(Declared):
    """Methods and the parts that they are composed of."""

    heads: dict[Name, Head]
    losses: dict[Name, LossTerm]
    calibrators: dict[Name, TemperatureScaling]
    methods: dict[Name, Method]


class Scoring(Declared):
    """The settings of every view; ``resamples`` and ``rare_labels`` are those of the test views."""

    ece_bins: Count
    resamples: Annotated[int, Field(ge=2)]
    rare_labels: Annotated[int, Field(ge=0)]


class Metric(Declared):
    """What a column shows: ``scale`` * the stored score; the per-label value where the column names a label."""

    label: Text
    score: Text
    better: Literal["higher", "lower"]
    scale: Positive
    decimals: Annotated[int, Field(ge=0, le=6)]


class MetricsFile(Declared):
    """How views are scored, and what tables may show of it."""

    scoring: Scoring
    metrics: dict[Name, Metric]


# --- tables ----------------------------------------------------------------------------------------------------------


class TableRow(Declared):
    """One row: a method, on the encoder of a role (the base encoder unless said)."""

    method: Name
    encoder: Name = "base"
    label: Text | None = None


class TableColumn(Declared):
    """A group of columns: what is looked at, and by which metrics; or the mean over other groups, named by label."""

    label: Text
    metrics: Items[Name] = Field(min_length=1)
    dataset: Name | None = None
    corruption: Share = 0.0
    rarest: Count | None = None  # the label of that rank by training count, 1 the rarest
    mean_over: Items[Text] = Field(default=())
    decimals: dict[Name, Annotated[int, Field(ge=0, le=6)]] = Field(default={})

    @model_validator(mode="after")
    def _one_kind(self) -> "TableColumn":
        if (self.dataset is None) == (not self.mean_over):
            raise PydanticCustomError("column", 'say either "dataset" or "mean_over" (labels of other columns)')
        return self


class Table(Declared):
    """Rows in groups (a rule between them), columns in groups. ``best_in``: where the best value is looked for."""

    number: Text  # in the paper
    caption: Text
    rows: Items[Items[TableRow]] = Field(min_length=1)
    columns: Items[TableColumn] = Field(min_length=1)
    best_in: Literal["column", "row_group"] = "column"


# --- profiles --------------------------------------------------------------------------------------------------------


class TrainingRule(Declared):
    """Settings for the runs that it names; what it does not name it holds for; a later rule has the last word."""

    dataset: Name | None = None
    encoder: Name | None = None
    method: Name | None = None
    corruption: Share | None = None
    max_length: Annotated[int, Field(ge=3)] | None = None
    learning_rate: Positive | None = None
    weight_decay: NotNegative | None = None
    betas: Pair[Share] | None = Field(default=None)
    epsilon: Positive | None = None
    batch_size: Count | None = None
    epochs: Count | None = None
    warmup_share: Share | None = None
    decay: Literal["linear", "none"] | None = None
    max_gradient_norm: Positive | Literal["none"] | None = None
    precision: Literal["auto", "float32", "bfloat16"] | None = None


class Profile(Declared):
    """Which data sets, encoders and settings stand behind the tables' names. ``note`` goes into every caption."""

    description: Text
    note: Text | None = None
    seeds: Items[Seed] = Field(min_length=1)
    datasets: dict[Name, Name]
    encoders: dict[Name, Name | dict[Name, Name]]  # role: encoder, or role: {data set: encoder}
    training: Items[TrainingRule] = Field(min_length=1)


# --- claims ----------------------------------------------------------------------------------------------------------


class Comparison(Declared):
    """Rows of a table, by key, held against each other in one of its cells."""

    row: Text
    against: Items[Text] = Field(min_length=1)
    column: Text  # a column's label
    metric: Literal["f1", "ece"]  # the scores that are resampled, so that noise can be told


class Claim(Declared):
    """What the paper says in words. ``holds``: the row is the best of all, the worst of all, or not the best, in every
    comparison; ``by``: how far it is from the nearest other row (for "not_best": from the best), as printed.
    """

    says: Text
    place: Text
    table: Name
    holds: Literal["best", "worst", "not_best"]
    comparisons: Items[Comparison] = Field(min_length=1)
    by: Positive | None = None

    @model_validator(mode="after")
    def _one_size(self) -> "Claim":
        if self.by is not None and len(self.comparisons) > 1:
            raise PydanticCustomError("by", 'a size ("by") needs exactly one comparison')
        return self


class Tolerance(Declared):
    """A size is reproduced if it is off by at most a share of the paper's or by so many points, whichever is more."""

    share: Share
    points: NotNegative
