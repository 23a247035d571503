"""What a worker keeps between runs: data sets, token ids, pretrained weights. Each is made once."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from benchmark.data import Corpus, check_corpus, corrupt_labels, corruption_seed, load_corpus
from benchmark.encoders import (
    FileHashes,
    FoundEncoder,
    encoder_fingerprint,
    find_encoder,
    missing_encoder_sentence,
)
from benchmark.errors import UserError
from benchmark.jobs import Job, WorkerSetup
from benchmark.models import (
    TextEncoder,
    TokenisedTexts,
    build_encoder,
    keep_tokens,
    load_encoder,
    load_tokenizer,
    tokenise,
)
from benchmark.splits import SPLITS
from benchmark.store import CorruptionRecord, DataRecord, EncoderRecord
from benchmark.training.loop import LabelledTexts, TrainingData

# Of encoders cut to the tokens of a data set; each is held twice: as trained, on the device while it is the one that
# is used, and as loaded, in the host's memory, so that on a device a run has it to itself.
_ENCODERS_KEPT = 2

Value = TypeVar("Value")


@dataclass
class LoadedEncoder:
    """An encoder, and in the host's memory its pretrained weights to start every run from."""

    module: TextEncoder
    pretrained: dict[str, Tensor]
    found: FoundEncoder
    parameters: int  # of the whole encoder; of its word embeddings only those are loaded that the texts ask for

    def reset(self) -> TextEncoder:
        """The module with its pretrained weights in place, whatever a run before left in it."""
        with torch.no_grad():
            for name, value in self.module.state_dict().items():
                value.copy_(self.pretrained[name])
        for parameter in self.module.parameters():
            parameter.grad = None
        return self.module


@dataclass
class Workbench:
    """Inputs of jobs, loaded on first use."""

    setup: WorkerSetup
    device: torch.device
    _corpora: dict[Hashable, Corpus] = field(default_factory=dict)
    _remarks: dict[Hashable, list[str]] = field(default_factory=dict)
    _texts: dict[Hashable, dict[str, TokenisedTexts]] = field(default_factory=dict)
    _places: dict[Hashable, FoundEncoder] = field(default_factory=dict)
    _encoders: OrderedDict[Hashable, LoadedEncoder] = field(default_factory=OrderedDict)

    def corpus(self, job: Job) -> Corpus:
        """The job's data set; UserError where its content is not what was planned with."""
        name, wanted = job.run.data.dataset, job.run.data.fingerprint
        corpus = _once(self._corpora, (name, wanted), lambda: load_corpus(name, job.dataset, self.setup.data_folders))
        if corpus.fingerprint != wanted:
            raise UserError(f'The data set "{name}" has changed since this run was planned; start the benchmark again.')
        return corpus

    def encoder(self, job: Job) -> LoadedEncoder:
        """The job's encoder, alone on the device, with the word embeddings of the job's texts."""
        spec = job.run.encoder
        key = (spec.fingerprint, spec.layers, job.run.data.fingerprint, spec.max_length)
        for other, loaded in self._encoders.items():
            if other != key:
                loaded.module.to("cpu")
        if key not in self._encoders:
            while len(self._encoders) >= _ENCODERS_KEPT:
                self._encoders.popitem(last=False)
            self._encoders[key] = self._load(job)
        self._encoders.move_to_end(key)
        self._encoders[key].module.to(self.device)
        return self._encoders[key]

    def data(self, job: Job) -> tuple[TrainingData, DataRecord]:
        """The job's texts and labels, changed as its run says, and what to record of them."""
        corpus = self.corpus(job)
        texts = self._tokenised(job, corpus)
        seed, rate = job.run.seed, job.run.data.corruption
        labels = {"test": corpus.test.labels}
        for split in ("train", "validation"):
            clean = corpus.split(split).labels
            labels[split] = corrupt_labels(clean, rate, corpus.n_labels, corruption_seed(seed, split))
        data = TrainingData(
            train=LabelledTexts(texts["train"], labels["train"]),
            validation=LabelledTexts(texts["validation"], labels["validation"]),
            test=LabelledTexts(texts["test"], labels["test"]),
            n_labels=corpus.n_labels,
        )
        publisher = job.dataset.publisher
        record = DataRecord(
            dataset=corpus.name,
            origin=corpus.origin,
            publisher=f"{publisher.name}, {publisher.homepage}" if publisher else None,
            fingerprint=corpus.fingerprint,
            label_names=list(corpus.label_names),
            rows={"train": len(corpus.train), "validation": len(corpus.validation), "test": len(corpus.test)},
            train_label_counts=np.bincount(corpus.train.labels, minlength=corpus.n_labels).tolist(),
            corruption=CorruptionRecord(
                requested=rate,
                train_changed=int((labels["train"] != corpus.train.labels).sum()),
                validation_changed=int((labels["validation"] != corpus.validation.labels).sum()),
            ),
            remarks=self._found_in(corpus),
        )
        return data, record

    def _found_in(self, corpus: Corpus) -> list[str]:
        """What to know of its rows, in words and without the texts, which belong in no result."""
        key = (corpus.name, corpus.fingerprint)
        return _once(self._remarks, key, lambda: check_corpus(corpus).remarks(with_texts=False))

    def _load(self, job: Job) -> LoadedEncoder:
        found = self._find(job)
        module = load_encoder(job.encoder, found.folder)
        module.require_room_for(job.run.encoder.max_length)
        parameters = sum(parameter.numel() for parameter in module.parameters())
        tokens = [texts.tokens for texts in self._tokenised(job, self.corpus(job)).values()]
        for of_split in tokens:
            module.require_tokens(of_split)
        keep_tokens(module, tokens)
        pretrained = {name: value.clone() for name, value in module.state_dict().items()}
        return LoadedEncoder(module, pretrained, found, parameters)

    def _find(self, job: Job) -> FoundEncoder:
        """The encoder's folder, built where it is one to build; UserError where its content is not what was planned
        with.
        """
        name, wanted = job.run.encoder.encoder, job.run.encoder.fingerprint

        def find() -> FoundEncoder:
            found = find_encoder(job.encoder, self.setup.encoder_folders, self.setup.built_encoders)
            if found is None:
                raise UserError(missing_encoder_sentence(name, job.encoder))
            if found.origin == "built":
                build_encoder(job.encoder, found.folder)
            hashes = FileHashes(self.setup.file_hashes)
            if encoder_fingerprint(found, job.encoder, hashes) != wanted:
                raise UserError(
                    f'The encoder "{name}" in {found.folder} is not the one that this run was planned with; where that '
                    "was on another machine, give both the same files, else start the benchmark again."
                )
            hashes.save()
            return found

        return _once(self._places, wanted, find)

    def _tokenised(self, job: Job, corpus: Corpus) -> dict[str, TokenisedTexts]:
        max_length = job.run.encoder.max_length

        def make() -> dict[str, TokenisedTexts]:
            tokenizer = load_tokenizer(job.encoder, self._find(job).folder)
            return {split: tokenise(tokenizer, corpus.split(split).texts, max_length) for split in SPLITS}

        return _once(self._texts, (corpus.fingerprint, job.run.encoder.fingerprint, max_length), make)


def encoder_record(job: Job, loaded: LoadedEncoder) -> EncoderRecord:
    """What to record of the encoder that was trained."""
    config = loaded.module.transformer.config
    fingerprint = job.run.encoder.fingerprint
    assert fingerprint is not None, "a run is only trained with inputs that are known"
    return EncoderRecord(
        encoder=job.run.encoder.encoder,
        origin=loaded.found.origin,
        revision=loaded.found.revision,
        fingerprint=fingerprint,
        architecture=config.model_type,
        layers=config.num_hidden_layers,
        hidden=loaded.module.hidden,
        parameters=loaded.parameters,
        rows="packed" if loaded.module.packed else "padded",
    )


def _once(cache: dict[Hashable, Value], key: Hashable, make: Callable[[], Value]) -> Value:
    if key not in cache:
        cache[key] = make()
    return cache[key]
