"""What was run, where and with what: the top of the page."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmark.declarations import Encoder, PretrainedSource, Table
from benchmark.durations import duration
from benchmark.plan import PlannedRun, make_plan
from benchmark.specs import readable_name
from benchmark.splits import SPLITS
from benchmark.store import EncoderRecord, Result
from benchmark.tables import GridBuilder, seed_list

UNKNOWN = "–"
_SHORT = 12  # digits of a hash that are shown


@dataclass(frozen=True)
class Fact:
    """One thing worth knowing about the runs, with all values that it has among them."""

    term: str
    values: tuple[str, ...]
    long: bool = False


@dataclass(frozen=True)
class FailedRun:
    """A run without scores, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class About:
    """The runs behind the tables. Methods, data sets and encoders are rows of text, in the order of their headings."""

    facts: tuple[Fact, ...]
    methods: tuple[tuple[str, ...], ...]
    datasets: tuple[tuple[str, ...], ...]
    encoders: tuple[tuple[str, ...], ...]
    failed: tuple[FailedRun, ...]


@dataclass(frozen=True)
class Heading:
    """What a column holds, and whether that is a count."""

    text: str
    count: bool = False


METHOD_HEADINGS = (Heading("Method"), Heading("What it is"))
DATASET_HEADINGS = (
    Heading("Data set"),
    Heading("Training rows", count=True),
    Heading("Validation rows", count=True),
    Heading("Test rows", count=True),
    Heading("Labels", count=True),
    Heading("Noisy labels"),
    Heading("Fingerprint"),
)
ENCODER_HEADINGS = (
    Heading("Encoder"),
    Heading("Layers × width"),
    Heading("Parameters", count=True),
    Heading("Source"),
    Heading("Revision"),
    Heading("Fingerprint"),
)


def describe(builder: GridBuilder, tables: Mapping[str, Table]) -> About:
    """The runs that the tables ask for, with the seeds that they show (the profile's own where there are none)."""
    seeds = builder.seeds or builder.profile.seeds
    finder = builder.finder
    plan = make_plan(
        builder.registry, finder.profile_name, tables, seeds, finder.inputs, finder.finished, leave_out=True
    )
    found = {run.run_id: builder.finder.finished.find(run.run) for run in plan}
    results = [result for result in found.values() if result is not None]
    done = [result for result in results if result.status == "success"]
    others = len(builder.finder.finished.by_run) - len({result.run_id for result in results})
    return About(
        facts=(
            Fact("Results", _counts(len(done), len(plan), len(results) - len(done), others)),
            Fact("Seeds", _seeds(builder)),
            Fact("Training time", _times(done)),
            Fact("Finished", _dates(done)),
            Fact("Devices", _counted(_device(result) for result in done)),
            Fact("Code", _counted(_code(result) for result in done)),
            Fact("Packages", _counted(_packages(result) for result in done), long=True),
        ),
        methods=tuple(_method_rows(builder, tables)),
        datasets=tuple(_dataset_row(plan, done, name) for name in _datasets(builder, plan)),
        encoders=tuple(_encoder_row(plan, done, name) for name in _encoders(builder, plan)),
        failed=tuple(
            FailedRun(f"{readable_name(result.run)}.json", f"{result.failure.kind}: {result.failure.reason}")
            for result in results
            if result.failure is not None
        ),
    )


def _counts(done: int, expected: int, failed: int, others: int) -> tuple[str, ...]:
    lines = [f"{done} of {expected} runs"]
    if failed:
        lines.append(f"{failed} failed")
    if expected > done + failed:
        lines.append(f"{expected - done - failed} not run yet")
    if others:
        lines.append(f"{others} more at hand that these tables do not ask for")
    return tuple(lines)


def _seeds(builder: GridBuilder) -> tuple[str, ...]:
    shown, declared = (_listed(seeds) for seeds in (builder.seeds, builder.profile.seeds))
    return (shown,) if shown == declared else (shown, f"the profile declares {declared}")


def _listed(seeds: Sequence[int]) -> str:
    if not seeds:
        return "none"
    return f"{len(seeds)} (seed{'s' if len(seeds) > 1 else ''} {seed_list(seeds)})"


def _times(done: list[Result]) -> tuple[str, ...]:
    seconds = sorted(result.training.seconds for result in done if result.training is not None)
    if not seconds:
        return (UNKNOWN,)
    if len(seconds) == 1:
        return (duration(seconds[0]),)
    return (
        f"{duration(sum(seconds))} summed over the runs, several of which may have gone side by side",
        f"{duration(seconds[0])} to {duration(seconds[-1])} a run",
    )


def _device(result: Result) -> str:
    threads = f"{result.environment.threads} thread{'s' if result.environment.threads != 1 else ''}"
    precision = f", {result.training.precision}" if result.training is not None else ""
    return f"{result.environment.device}, {threads}{precision}"


def _code(result: Result) -> str:
    environment = result.environment
    if environment.code_commit is None:
        return f"version {environment.code_version}, commit not known"
    changed = ", with changes" if environment.code_changed else ""
    return f"version {environment.code_version}, commit {environment.code_commit[:_SHORT]}{changed}"


def _packages(result: Result) -> str:
    packages = {"Python": result.environment.python} | result.environment.packages
    return ", ".join(f"{name} {version}" for name, version in packages.items())


def _counted(values: Iterable[str]) -> tuple[str, ...]:
    """Each value once, most frequent first; with the number of its runs where there are several."""
    counts = Counter(values)
    if len(counts) < 2:
        return tuple(counts) or (UNKNOWN,)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(f"{value} ({count} run{'s' if count != 1 else ''})" for value, count in ordered)


def _dates(done: list[Result]) -> tuple[str, ...]:
    dates = sorted(result.environment.finished_at[:10] for result in done)
    if not dates:
        return (UNKNOWN,)
    return (dates[0],) if dates[0] == dates[-1] else (f"{dates[0]} to {dates[-1]}",)


def _datasets(builder: GridBuilder, plan: list[PlannedRun]) -> list[str]:
    """Those of the plan, in the profile's order."""
    planned = {run.run.data.dataset for run in plan}
    return [name for name in dict.fromkeys(builder.profile.datasets.values()) if name in planned]


def _encoders(builder: GridBuilder, plan: list[PlannedRun]) -> list[str]:
    planned = {run.run.encoder.encoder for run in plan}
    return [name for name in builder.profile.encoder_names if name in planned]


def _method_rows(builder: GridBuilder, tables: Mapping[str, Table]) -> list[tuple[str, str]]:
    """Those that the tables compare, in the registry's order."""
    shown = {row.method for table in tables.values() for row in table.every_row}
    methods = builder.registry.methods.methods
    return [(method.label, method.source) for name, method in methods.items() if name in shown]


def _dataset_row(plan: list[PlannedRun], done: list[Result], name: str) -> tuple[str, ...]:
    declared = next(run.dataset for run in plan if run.run.data.dataset == name)
    record = next((result.data for result in done if result.data and result.data.dataset == name), None)
    if record is None:
        return (declared.label, *[UNKNOWN] * (len(DATASET_HEADINGS) - 1))
    shares = sorted({result.run.data.corruption for result in done if result.run.data.dataset == name})
    return (
        declared.label,
        *(f"{record.rows[split]:,}" for split in SPLITS),
        str(len(record.label_names)),
        ", ".join(f"{100 * share:g} %" if share else "none" for share in shares),
        record.fingerprint[:_SHORT],
    )


def _encoder_row(plan: list[PlannedRun], done: list[Result], name: str) -> tuple[str, ...]:
    declared = next(run.encoder for run in plan if run.run.encoder.encoder == name)
    record = next((result.encoder for result in done if result.encoder and result.encoder.encoder == name), None)
    source = declared.source.id if isinstance(declared.source, PretrainedSource) else "built, random weights"
    if record is None:
        return (declared.label, UNKNOWN, UNKNOWN, source, UNKNOWN, UNKNOWN)
    return (
        declared.label,
        f"{record.layers} × {record.hidden}",
        _millions(record.parameters),
        source,
        _revision(declared, record),
        record.fingerprint[:_SHORT],
    )


def _revision(declared: Encoder, record: EncoderRecord) -> str:
    """The commit that was loaded; a local copy has none, so only its content is sure."""
    if not isinstance(declared.source, PretrainedSource):
        return UNKNOWN
    if record.revision is not None:
        return record.revision[:_SHORT]
    return f"local copy, declared {declared.source.revision[:_SHORT]}"


def _millions(count: int) -> str:
    return f"{count / 1e6:.1f} million" if count >= 1e6 else f"{count:,}"
