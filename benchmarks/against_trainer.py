"""Training speed beside the Hugging Face Trainer: the same encoder, texts, batches, optimiser and schedule.

Each variant runs in a process of its own, in turn (A B C, C B A, ...); what counts is its second epoch, after a first
that warms up. "trainer grouped", which has to be asked for, puts texts of like length into a batch, so that fewer slots
are padding (and batches are less random); ours pads nothing. Prints seconds an epoch, real (not padding) tokens a
second, and ratios to the first variant.

    python benchmarks/against_trainer.py --profile small --dataset banking77 --data-dir DATA --encoder-dir ENCODERS

Needs ``pip install accelerate`` beside requirements.txt, which the Trainer asks for. Random weights serve as well as
trained ones: speed does not depend on them. So ``--bert-base`` makes an encoder of that size, with the vocabulary of
the one that is named.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

VARIANTS = ("ours", "ours float32", "trainer", "trainer float32")
GROUPED = "trainer grouped"  # by length, among the texts of up to 50 batches: it takes an epoch of many steps
_STEPS = {"cpu": 4, "cuda": 150}  # an epoch; where a step is short, beginnings of epochs must not count
_COLLATING = 4  # processes
BERT_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}


def main() -> None:
    """Run every variant in turn and compare."""
    arguments = _arguments()
    if arguments.variant is not None:
        print(json.dumps(_measure(arguments)))
        return
    names = [name for name in (*VARIANTS, GROUPED) if name in arguments.variants]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as made:
        more = ["--made", made] if arguments.bert_base else []
        if arguments.bert_base:
            _make_bert_base(arguments, Path(made))
        for repeat in range(arguments.repeats):
            for name in names if repeat % 2 == 0 else reversed(names):
                found[name].append(_in_a_process(name, more))
                print(f"repeat {repeat + 1}, {name}: {found[name][-1]['seconds']:.2f} s", file=sys.stderr)
    _print(found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--profile", default="small")
    parser.add_argument("--dataset", default="banking77")
    parser.add_argument("--encoder", help="an entry of encoders.yaml (default: the profile's base encoder)")
    parser.add_argument("--data-dir")
    parser.add_argument("--encoder-dir")
    parser.add_argument(
        "--steps", type=int, help="steps an epoch (default: 4 on a CPU, 150 on a GPU, at most the data's)"
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bert-base", action="store_true", help="random weights of BERT-base's shape")
    parser.add_argument("--variants", nargs="+", choices=(*VARIANTS, GROUPED), default=VARIANTS)
    parser.add_argument("--variant", choices=(*VARIANTS, GROUPED), help=argparse.SUPPRESS)
    parser.add_argument("--made", type=Path, help=argparse.SUPPRESS)  # the folder of an encoder made for this
    return parser.parse_args()


def _make_bert_base(arguments: argparse.Namespace, folder: Path) -> None:
    """Write a model folder: configuration and random weights of that shape, the tokenizer of the encoder asked for."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    source = _encoder(arguments)[1]
    AutoModel.from_config(AutoConfig.from_pretrained(source, **BERT_BASE)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)


def _in_a_process(variant: str, more: list[str]) -> dict[str, float]:
    command = [sys.executable, __file__, *sys.argv[1:], *more, "--variant", variant]
    # one GPU: where there are several the Trainer would spread a batch over all of them
    one = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]}
    call = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | one)
    if call.returncode:
        sys.exit(call.stderr)
    return dict(json.loads(call.stdout.splitlines()[-1]))


def _print(found: dict[str, list[dict[str, float]]]) -> None:
    from tabulate import tabulate

    first = next(iter(found))
    rows = []
    for name, measured in found.items():
        seconds = [one["seconds"] for one in measured]
        ratios = [other["seconds"] / ours["seconds"] for other, ours in zip(measured, found[first], strict=True)]
        rows.append(
            (
                name,
                f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})",
                f"{statistics.median(one['tokens'] / one['seconds'] for one in measured):,.0f}",
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                f"{max(one['peak_bytes'] for one in measured) / 2**30:.2f}",
            )
        )
    heads = ["variant", "s/epoch", "tokens/s", f"times {first}", "peak GiB"]
    print(tabulate(rows, heads, tablefmt="pipe", disable_numparse=True))


def _measure(arguments: argparse.Namespace) -> dict[str, float]:
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # before torch is imported
    import resource

    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    torch.backends.cuda.enable_cudnn_sdp(False)  # for both, as training does: one kernel of attention, one dropout
    inputs = _inputs(arguments)
    precision = "float32" if arguments.variant.endswith("float32") else "auto"
    ours = arguments.variant.startswith("ours")
    seconds = _ours(inputs, precision) if ours else _trainer(inputs, precision, arguments.variant == GROUPED)
    if torch.cuda.is_available():
        peak = torch.cuda.max_memory_allocated()
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "tokens": float(inputs["tokens"]), "peak_bytes": float(peak)}


def _encoder(arguments: argparse.Namespace) -> tuple[Any, Path]:
    """The encoder that is trained, and its folder."""
    from benchmark.encoders import find_encoder
    from benchmark.inputs import places
    from benchmark.models import build_encoder
    from benchmark.registry import load_registry

    registry = load_registry()
    base = registry.profile(arguments.profile).encoders["base"]
    name = arguments.encoder or (base[arguments.dataset] if isinstance(base, dict) else base)
    encoder = registry.encoders[name]
    if arguments.made:
        return encoder.model_copy(update={"layers": None}), arguments.made
    where = places(arguments.data_dir, arguments.encoder_dir)
    found = find_encoder(encoder, where.encoder_folders, where.built_encoders)
    if found is None:
        sys.exit(f"The encoder {name} is not on this machine.")
    if found.origin == "built":
        build_encoder(encoder, found.folder)
    return encoder, found.folder


def _inputs(arguments: argparse.Namespace) -> dict[str, Any]:
    """The run, rows of the data set drawn at random, as batches are in training (files may be sorted by label, and so
    by length), and the encoder's folder.
    """
    import numpy as np
    import torch

    from benchmark.data import load_corpus
    from benchmark.inputs import places
    from benchmark.models import load_tokenizer, tokenise
    from benchmark.registry import Inputs, Subject, load_registry, resolve_run

    registry = load_registry()
    profile = registry.profile(arguments.profile)
    run = resolve_run(registry, arguments.profile, Subject(arguments.dataset, "base", "bert"), 0, Inputs())
    encoder, folder = _encoder(arguments)
    name = profile.datasets[arguments.dataset]
    data_folders = places(arguments.data_dir, arguments.encoder_dir).all_data_folders
    corpus = load_corpus(name, registry.datasets[name], data_folders)
    rows = run.optimisation.batch_size * (arguments.steps or _STEPS["cuda" if torch.cuda.is_available() else "cpu"])
    drawn = np.random.default_rng(0).permutation(len(corpus.train))[:rows]
    texts, labels = tuple(corpus.train.texts[row] for row in drawn), corpus.train.labels[drawn]
    tokenizer = load_tokenizer(encoder, folder)
    tokenised = tokenise(tokenizer, texts, run.encoder.max_length)
    return {
        "run": run,
        "encoder": encoder,
        "folder": folder,
        "tokenizer": tokenizer,
        "texts": texts,
        "tokenised": tokenised,
        "labels": labels,
        "n_labels": corpus.n_labels,
        "tokens": int(tokenised.lengths.sum()),
        "corpus": corpus,
    }


def _ours(inputs: dict[str, Any], precision: str) -> float:
    import torch

    from benchmark.models import keep_tokens, load_encoder, tokenise
    from benchmark.training.loop import LabelledTexts, TrainingData, train
    from benchmark.training.objective import Epoch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    run = inputs["run"]
    run = run.model_copy(
        update={"optimisation": run.optimisation.model_copy(update={"epochs": 2, "precision": precision})}
    )
    rows = LabelledTexts(inputs["tokenised"], inputs["labels"])
    data = TrainingData(train=rows, validation=rows, test=rows, n_labels=inputs["n_labels"])
    ends: list[float] = []

    class Enough(Exception):
        """Both epochs are timed; what follows is evaluation."""

    def on_epoch(done: int, seconds: float, recorded: Epoch) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()
        ends.append(time.perf_counter())
        if done == 2:
            raise Enough

    encoder = load_encoder(inputs["encoder"], inputs["folder"])
    corpus, length = inputs["corpus"], run.encoder.max_length
    texts = [
        tokenise(inputs["tokenizer"], split.texts, length) for split in (corpus.train, corpus.validation, corpus.test)
    ]
    keep_tokens(encoder, [tokenised.tokens for tokenised in texts])  # as every run does
    with contextlib.suppress(Enough):
        train(run, data, encoder.to(device), device, on_epoch)
    return ends[1] - ends[0]


def training_arguments(run: Any, folder: str, epochs: int, may_use_bfloat16: bool, grouped: bool = False) -> Any:
    """The Trainer's settings for a run, as a good user would write them."""
    import torch
    from transformers import TrainingArguments

    from benchmark.training.precision import supports_bfloat16

    settings = run.optimisation
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return TrainingArguments(
        output_dir=folder,
        num_train_epochs=epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=1024,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup_share,
        lr_scheduler_type="linear",
        max_grad_norm=settings.max_gradient_norm or 0.0,
        optim="adamw_torch_fused",
        bf16=may_use_bfloat16 and supports_bfloat16(device),
        use_cpu=device.type == "cpu",
        # beside a GPU cores are free to collate, which takes several milliseconds a batch; on a CPU they compute
        dataloader_num_workers=_COLLATING if device.type == "cuda" else 0,
        dataloader_persistent_workers=device.type == "cuda",
        accelerator_config={"non_blocking": True},
        train_sampling_strategy="group_by_length" if grouped else "random",
        logging_strategy="no",
        logging_nan_inf_filter=False,  # which waits for the device in every step
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


def _trainer(inputs: dict[str, Any], precision: str, grouped: bool) -> float:
    """The Trainer as a good user sets it up: padding to a multiple of 8 a batch, fused AdamW, no logging or saving."""
    import torch
    from datasets import Dataset
    from transformers import (
        AutoModelForSequenceClassification,
        DataCollatorWithPadding,
        Trainer,
        TrainerCallback,
    )

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    layers = {} if inputs["encoder"].layers is None else {"num_hidden_layers": inputs["encoder"].layers}
    model = AutoModelForSequenceClassification.from_pretrained(
        inputs["folder"], num_labels=inputs["n_labels"], dtype=torch.float32, **layers
    )
    encoded = inputs["tokenizer"](list(inputs["texts"]), truncation=True, max_length=inputs["run"].encoder.max_length)
    rows = Dataset.from_dict({**encoded, "labels": inputs["labels"].tolist()})
    starts: list[float] = []

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_epoch_begin(self, *_: object, **__: object) -> None:
            if device.type == "cuda":
                torch.cuda.synchronize()
            starts.append(time.perf_counter())

        on_train_end = on_epoch_begin

    with tempfile.TemporaryDirectory() as folder:
        wanted = training_arguments(inputs["run"], folder, 2, precision == "auto", grouped)
        collator = DataCollatorWithPadding(inputs["tokenizer"], pad_to_multiple_of=8)
        Trainer(model=model, args=wanted, train_dataset=rows, data_collator=collator, callbacks=[Clock()]).train()
    return starts[2] - starts[1]


if __name__ == "__main__":
    main()
