"""The shape of data sets in ``experiments/``."""

from pathlib import PurePath
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from benchmark.declarations.texts import Below, Folder, HubId, Text
from benchmark.specs import Count, Declared, Items, Pair, Positive, Seed, Sha256, Share, written_as
from benchmark.splits import SPLITS, SplitName


class FileSource(Declared):
    """Text files in the publisher's own layout, in a folder of that name in the data folder, or at a whole path."""

    kind: Literal["files"]
    folder: Folder
    format: Literal["csv", "json_lines", "parquet"]
    delimiter: Annotated[str, written_as(r'[^"\r\n]', "one character, no quote and no end of a line,")] = ","
    train: Items[Below] = Field(min_length=1)  # file names or glob patterns
    validation: Items[Below] = Field(default=())
    test: Items[Below] = Field(default=())
    text: Text  # the column or key of the text
    intent: Items[Text] = Field(min_length=1)  # of the label; several are joined by "_"


class GeneratedSource(Declared):
    """A corpus made on the spot from a seed; what each setting does stands in ``data.generated``."""

    kind: Literal["generated"]
    labels: Annotated[int, Field(ge=2)]
    rows: dict[SplitName, Count]
    label_shares: Items[Positive] | None = Field(default=None)
    words_per_text: Pair[Count]
    vocabulary: Count
    keywords_per_label: Count
    keyword_share: Share
    neighbour_share: Share
    confusion: Share
    seed: Seed

    @model_validator(mode="after")
    def _fits_together(self) -> "GeneratedSource":
        if self.words_per_text[0] > self.words_per_text[1]:
            raise PydanticCustomError("words", "words_per_text: the smaller number comes first")
        if self.keywords_per_label > self.vocabulary:
            raise PydanticCustomError("keywords", "keywords_per_label: there are not so many words in the vocabulary")
        if self.label_shares is not None and len(self.label_shares) != self.labels:
            raise PydanticCustomError("shares", "label_shares: one share a label is needed")
        for split in SPLITS:
            if self.rows.get(split, 0) < self.labels:
                raise PydanticCustomError("rows", "rows: train, validation and test need at least one row a label each")
        return self


class DrawnRows(Declared):
    """How many of the training rows, drawn once from a seed of their own. ``stratified``: from each label its share, as
    nearly as whole rows allow; each label keeps a training row.
    """

    rows: Count
    seed: Seed
    stratified: bool = False


class ExpectedSizes(Declared):
    """Rows a split and labels that the files must have."""

    train: Count
    validation: Count
    test: Count
    labels: Count


class Download(Declared):
    """One file of the publisher. ``members``: what to take out of an archive (pattern: target folder or file name)."""

    url: Annotated[str, written_as(r"https?://.*", "an address that begins with https:// or http://")]
    sha256: Sha256 | None = None
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

    @model_validator(mode="after")
    def _somewhere(self) -> "Publisher":
        if not self.downloads and not self.hub:
            raise PydanticCustomError("publisher", 'say where the files are: "downloads", "hub", or both')
        return self


class Dataset(Declared):
    """One data set. ``labels``: names in order (an id may carry a name for figures), or "sorted". ``test`` and
    ``validation``: rows to hold out. ``train``: of the training rows that are left then, only so many.
    """

    label: Text
    source: Annotated[FileSource | GeneratedSource, Field(discriminator="kind")]
    labels: Literal["sorted"] | Annotated[dict[Text, Text], Field(min_length=2)] = "sorted"
    train: DrawnRows | None = None
    validation: DrawnRows | None = None
    test: DrawnRows | None = None
    expected: ExpectedSizes | None = None
    fingerprint: Sha256 | None = None
    tokens_per_text: Positive  # for time estimates only
    training_rows: Count | None = None  # for time estimates only, where nothing else says how many there are
    publisher: Publisher | None = None

    @model_validator(mode="after")
    def _fetched_into_the_cache(self) -> "Dataset":
        folder = self.source.folder if isinstance(self.source, FileSource) else ""
        if self.publisher is not None and PurePath(folder).is_absolute():
            raise PydanticCustomError("folder", "publisher: what is fetched goes below the cache; name a folder there")
        return self

    @model_validator(mode="after")
    def _generated_whole(self) -> "Dataset":
        given = [name for name in SPLITS if getattr(self, name) is not None]
        if isinstance(self.source, GeneratedSource) and (given or self.labels != "sorted"):
            what = given[0] if given else "labels"
            raise PydanticCustomError("generated", f"{what}: a generated source makes it itself; leave it out")
        return self

    @model_validator(mode="after")
    def _as_many_as_drawn(self) -> "Dataset":
        if self.train is None:
            return self
        if self.expected is not None and self.expected.train != self.train.rows:
            raise PydanticCustomError("drawn", "expected.train: it is the number of rows that train draws")
        if self.training_rows is not None:
            raise PydanticCustomError("drawn", "training_rows: train says already how many there are; leave it out")
        return self

    @model_validator(mode="after")
    def _one_test(self) -> "Dataset":
        if isinstance(self.source, FileSource) and bool(self.source.test) == (self.test is not None):
            raise PydanticCustomError("test", "test: give either test files in the source or rows to hold out")
        return self

    @model_validator(mode="after")
    def _one_validation(self) -> "Dataset":
        if self.validation is not None and isinstance(self.source, FileSource) and self.source.validation:
            raise PydanticCustomError(
                "validation",
                "validation: the source has validation files; give those or rows to hold out",
            )
        return self
