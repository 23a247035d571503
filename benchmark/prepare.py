"""``python -m benchmark.prepare``: fetch and check, once, all that a profile needs. Afterwards nothing touches the
network.
"""

import argparse
from collections.abc import Sequence
from functools import partial

from rich.console import Console

from benchmark.commandline import (
    DONE,
    add_common_options,
    add_input_options,
    choose_profile,
    headline,
    new_console,
    new_parser,
    read_registry,
    run_command,
)
from benchmark.data import Corpus, check_corpus, fetch_dataset, find_folder, load_corpus, missing_sentence
from benchmark.declarations import BuiltSource, Dataset, Encoder, FileSource, PretrainedSource
from benchmark.durations import duration
from benchmark.encoders import FoundEncoder, fetch_encoder, find_encoder
from benchmark.errors import UserError
from benchmark.estimates import Estimator, work_of
from benchmark.inputs import Places, places
from benchmark.plan import PlannedRun, make_plan
from benchmark.registry import Inputs, Registry, narrowed
from benchmark.schedule import find_devices, make_slots
from benchmark.search import plan_searches, searches_for, select_searches
from benchmark.store import KnownResults


def _parser() -> argparse.ArgumentParser:
    parser = new_parser("prepare", "Fetch and check the data sets and encoders of a profile.")
    add_common_options(parser)
    add_input_options(parser)
    return parser


def _command(arguments: argparse.Namespace) -> int:
    console = new_console()
    registry = read_registry(arguments.experiments)
    profile_name, why = choose_profile(arguments.profile, lambda: find_devices()[0].kind == "cuda")
    profile = registry.profile(profile_name)
    where = places(arguments.data_dir, arguments.encoder_dir)
    plan = _plan(registry, profile_name)
    console.print(headline(registry, profile_name, why, f"{profile.description} {_time(plan)}"))
    problems = []
    corpora: dict[str, Corpus] = {}
    for name in dict.fromkeys(profile.datasets.values()):
        try:
            corpora[name] = _prepare_dataset(console, name, registry.datasets[name], where)
        except UserError as error:
            problems.append(str(error))
    fetched = _Fetched(console)
    for name in profile.encoder_names:
        try:
            found = _prepare_encoder(console, name, registry.encoders[name], where, fetched)
            _check_encoder(console, registry.encoders[name], found, corpora, _lengths(plan, name))
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError("\n".join(dict.fromkeys(problems)))
    declared = {name: registry.datasets[name].fingerprint for name in corpora}
    others = [name for name, corpus in corpora.items() if declared[name] not in (None, corpus.fingerprint)]
    but = f", but not as declared: {', '.join(others)}" if others else " and in order"
    console.print(f"All inputs are here{but}.")
    return DONE


def _plan(registry: Registry, profile_name: str) -> list[PlannedRun]:
    """All runs of a profile: those of all tables; where it has only optional ones, of these; where none, of its
    searches. Runs whose settings do not go together are left out: benchmark.run says so of those that it is asked for.
    """
    seeds = registry.profile(profile_name).seeds
    for names in (["all"], list(registry.tables)):
        if tables := narrowed(registry, profile_name, names):
            plan = partial(make_plan, registry, profile_name, tables, seeds, Inputs(), KnownResults.of([]))
            return plan(leave_out=True) or plan()  # which says why there is none
    if names := searches_for(registry, profile_name):
        searches = select_searches(registry, profile_name, names)
        return plan_searches(registry, profile_name, searches, seeds, Inputs(), KnownResults.of([]))
    raise UserError(f"Profile {profile_name} has no run: no table or search is about its data sets.")


def _time(plan: Sequence[PlannedRun]) -> str:
    """How long they will take here, by operation counts."""
    devices = find_devices()
    estimator = Estimator(devices[0].kind, devices[0].name)
    seconds = sum(estimator.seconds(work_of(planned.run, planned.dataset, planned.encoder)) for planned in plan)
    workers = len(make_slots(devices, None, len(plan)))
    time = duration(seconds / workers + estimator.start_seconds)
    return f"All its {len(plan)} trainings take about {time} here (a rough guess)"


def _lengths(plan: Sequence[PlannedRun], encoder: str) -> list[tuple[str, int]]:
    """Data sets that runs with this encoder are trained on, each with where texts are cut, in tokens."""
    runs = [planned.run for planned in plan if planned.run.encoder.encoder == encoder]
    return sorted({(run.data.dataset, run.encoder.max_length) for run in runs})


def _prepare_dataset(console: Console, name: str, dataset: Dataset, where: Places) -> Corpus:
    folder = find_folder(dataset, where.all_data_folders)
    if folder is None and isinstance(dataset.source, FileSource):
        if dataset.publisher is None:
            raise UserError(missing_sentence(name, dataset))
        console.print(f"data set {name}: fetching from {dataset.publisher.homepage}")
        folder = fetch_dataset(name, dataset, where.fetched_data)
    origin = "generated" if folder is None else f"in {folder}"
    corpus = load_corpus(name, dataset, where.all_data_folders)
    report = check_corpus(corpus)
    console.print(f"data set {name}: {origin}")
    console.print(f"  {report.sizes()}")
    console.print(f"  training rows a label: {report.rarest_label_rows:,} to {report.commonest_label_rows:,}")
    for remark in report.remarks():
        console.print(f"  {remark}")
    if dataset.fingerprint is None:
        agreement = ""
    elif dataset.fingerprint == report.fingerprint:
        agreement = ", as declared"
    else:
        agreement = f"; NOT the declared {dataset.fingerprint[:16]}...: results will not compare with published ones"
    console.print(f"  fingerprint: {report.fingerprint[:16]}...{agreement}")
    return corpus


class _Fetched:
    """Models of the hub, each asked for once: encoders that take a part of the same one share it, and its failure."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.outcomes: dict[tuple[str, str], FoundEncoder | UserError] = {}

    def encoder(self, name: str, source: PretrainedSource) -> FoundEncoder:
        """The files of an encoder's source. Raises UserError where they cannot be fetched, or could not before."""
        key = (source.id, source.revision)
        if key not in self.outcomes:
            self.console.print(f"encoder {name}: fetching {source.id} from the hub")
            try:
                self.outcomes[key] = fetch_encoder(source)
            except UserError as error:
                self.outcomes[key] = error
        outcome = self.outcomes[key]
        if isinstance(outcome, UserError):
            raise outcome
        return outcome


def _prepare_encoder(console: Console, name: str, encoder: Encoder, where: Places, fetched: _Fetched) -> FoundEncoder:
    found = find_encoder(encoder, where.encoder_folders, where.built_encoders)
    if found is None:
        assert not isinstance(encoder.source, BuiltSource)
        found = fetched.encoder(name, encoder.source)
    if found.origin == "built":
        from benchmark.models import build_encoder

        build_encoder(encoder, found.folder)
    revision = f", revision {found.revision}" if found.revision else ""
    console.print(f"encoder {name}: in {found.folder}{revision}")
    return found


def _check_encoder(
    console: Console, encoder: Encoder, found: FoundEncoder, corpora: dict[str, Corpus], lengths: list[tuple[str, int]]
) -> None:
    """Whether the encoder can be loaded, and how many texts of each data set it will see cut short."""
    from benchmark.models import load_encoder, load_tokenizer, tokenise

    module = load_encoder(encoder, found.folder)
    tokenizer = load_tokenizer(encoder, found.folder)
    for dataset, longest in lengths:
        module.require_room_for(longest)
        if dataset not in corpora:
            continue
        texts = tokenise(tokenizer, corpora[dataset].train.texts, longest + 1)
        module.require_tokens(texts.tokens)
        cut = int((texts.lengths > longest).sum())
        mean = texts.lengths.clip(max=longest).mean()
        console.print(f"  {dataset}: {mean:.1f} tokens a text, {cut} of {len(texts):,} training texts cut at {longest}")


if __name__ == "__main__":
    run_command(_command, _parser())
