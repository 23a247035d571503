"""A whole plan of runs beside a shell loop that starts one Hugging Face Trainer a run, as many side by side as the plan
has workers, each with as many threads.

python benchmarks/whole_plan.py --profile demo --every 5     # the loop is timed on every fifth run

The loop's processes train with cross-entropy alone, whatever the method, and score nothing: what they lack would cost
them time. Needs ``pip install accelerate`` beside requirements.txt, which the Trainer asks for.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import joblib

if TYPE_CHECKING:
    from benchmark.plan import PlannedRun

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "benchmarks")]

from benchmark.schedule import find_devices, make_slots  # noqa: E402


def main() -> None:
    """Time both, and print how many times ours the loop takes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--profile", default="demo")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="time the loop on every N-th run only")
    parser.add_argument("--data-dir")
    parser.add_argument("--encoder-dir")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)  # a file that holds a planned run
    arguments = parser.parse_args()
    if arguments.one is not None:
        _train_one(arguments, joblib.load(arguments.one))
        return
    # one GPU for both: a Trainer would spread each batch over several, and so take fewer and larger steps
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    plan = _plan(arguments)
    slots = make_slots(find_devices(), None, len(plan))
    given = {"--data-dir": arguments.data_dir, "--encoder-dir": arguments.encoder_dir}
    inputs = [word for option, value in given.items() if value for word in (option, value)]
    with tempfile.TemporaryDirectory() as folder:
        ours = _timed(
            "-m", "benchmark.run", "--profile", arguments.profile, "--seeds", "0", "--results-dir", folder, *inputs
        )
    print(f"ours: {len(plan)} runs in {ours:.0f} s", file=sys.stderr)
    chosen = plan[:: arguments.every]
    with tempfile.TemporaryDirectory() as folder:
        files = [joblib.dump(planned, Path(folder) / str(index))[0] for index, planned in enumerate(chosen)]
        started = time.perf_counter()
        with ThreadPoolExecutor(len(slots)) as side_by_side:
            loop = partial(_timed, __file__, *sys.argv[1:], "--one", threads=slots[0].threads)
            for index, seconds in enumerate(side_by_side.map(loop, files)):
                print(f"loop, run {index + 1} of {len(chosen)}: {seconds:.1f} s", file=sys.stderr)
        whole = (time.perf_counter() - started) / len(chosen) * len(plan)
    basis = "" if arguments.every == 1 else f" (from {len(chosen)} of them)"
    print(f"{arguments.profile}: {len(plan)} runs; ours {ours:.0f} s, ", end="")
    print(f"the loop {whole:.0f} s{basis}, {len(slots)} side by side, {whole / ours:.1f} times ours")


def _timed(*arguments: str, threads: int | None = None) -> float:
    started = time.perf_counter()
    of_cpu = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, *arguments]
    call = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, env=os.environ | of_cpu)
    if call.returncode:
        sys.exit(call.stdout + call.stderr)
    return time.perf_counter() - started


def _plan(arguments: argparse.Namespace) -> "list[PlannedRun]":
    """The plan of seed 0."""
    from benchmark.inputs import find_table_inputs, places
    from benchmark.plan import make_plan
    from benchmark.registry import load_registry, select_tables
    from benchmark.store import KnownResults

    registry = load_registry()
    tables = select_tables(registry, arguments.profile, ["all"])
    where = places(arguments.data_dir, arguments.encoder_dir)
    found = find_table_inputs(registry, arguments.profile, tables.values(), where)
    if found.missing:
        sys.exit("\n".join(found.missing.values()))
    return make_plan(registry, arguments.profile, tables, [0], found.inputs, KnownResults.of([]))


def _train_one(arguments: argparse.Namespace, planned: "PlannedRun") -> None:
    """What a script of the loop does: read, tokenise, train, predict both held-out splits."""
    import torch
    from against_trainer import training_arguments
    from datasets import Dataset
    from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer

    from benchmark.data import load_corpus
    from benchmark.encoders import find_encoder
    from benchmark.inputs import places
    from benchmark.models import build_encoder, load_tokenizer

    torch.backends.cuda.enable_cudnn_sdp(False)  # for both, as training does
    where, run = places(arguments.data_dir, arguments.encoder_dir), planned.run
    corpus = load_corpus(run.data.dataset, planned.dataset, where.all_data_folders)
    found = find_encoder(planned.encoder, where.encoder_folders, where.built_encoders)
    assert found is not None, "the plan found it"
    if found.origin == "built":
        build_encoder(planned.encoder, found.folder)
    tokenizer = load_tokenizer(planned.encoder, found.folder)
    layers = {} if planned.encoder.layers is None else {"num_hidden_layers": planned.encoder.layers}
    model = AutoModelForSequenceClassification.from_pretrained(
        found.folder, num_labels=corpus.n_labels, dtype=torch.float32, **layers
    )

    def rows(split: Literal["train", "validation", "test"]) -> Dataset:
        part = corpus.split(split)
        encoded = tokenizer(list(part.texts), truncation=True, max_length=run.encoder.max_length)
        return Dataset.from_dict({**encoded, "labels": part.labels.tolist()})

    with tempfile.TemporaryDirectory() as folder:
        wanted = training_arguments(run, folder, run.optimisation.epochs, run.optimisation.precision == "auto")
        collator = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)
        trainer = Trainer(model=model, args=wanted, train_dataset=rows("train"), data_collator=collator)
        trainer.train()
        for split in ("validation", "test"):
            trainer.predict(rows(split))


if __name__ == "__main__":
    main()
