"""The pool of worker processes, with workers that die, run out of memory, or find a job held, at will."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmark.jobs import EpochDone, Job, JobEnded, WorkerSetup
from benchmark.registry import Inputs, Registry, Subject, resolve_run
from benchmark.schedule import CannotStart, Device, NoPlace, Pool, Slot, Update, local_workers
from tests.fake_worker import (
    ALWAYS_DIES,
    DIES_TWICE,
    ENDLESS,
    HELD_ONCE,
    MISTAKEN,
    NEEDS_PIECES,
    SHORT,
    SLEEPS,
    SUCCEEDS,
    TOO_LARGE,
)
from tests.results import worker_setup

FAKE = (sys.executable, str(Path(__file__).with_name("fake_worker.py")))
CPU = Slot(Device("cpu", "CPU"), 1)


def job(registry: Registry, seed: int) -> Job:
    """Of a batch of its own, so that what memory one takes says nothing of another."""
    run = resolve_run(registry, "tiny", Subject("tnews", "base", "bert"), seed, Inputs())
    run = run.model_copy(update={"optimisation": run.optimisation.model_copy(update={"batch_size": 8 + seed})})
    dataset, encoder = registry.datasets[run.data.dataset], registry.encoders[run.encoder.encoder]
    return Job(run=run, views=(), dataset=dataset, encoder=encoder, redo=False)


def pool(
    folder: Path,
    updates: list[Update],
    slots: list[Slot],
    command: tuple[str, ...] = FAKE,
    on_retired: Callable[[str], None] = lambda reason: None,
) -> Pool:
    def setup(slot: Slot) -> WorkerSetup:
        return worker_setup(folder, threads=slot.threads)

    hire = local_workers(slots, setup, folder / "logs", command)
    return Pool(len(slots), hire, updates.append, on_retired)


def first(script: str) -> tuple[str, ...]:
    """A command that runs a shell's script, in which it may end, and then is the fake worker."""
    return ("sh", "-c", f'{script}; exec "$@"', "sh", *FAKE)


def ends(updates: list[Update], seed: int) -> list[JobEnded]:
    return [update.event for update in updates if isinstance(update.event, JobEnded) and update.job.run.seed == seed]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmark.schedule.pool._SECONDS_BETWEEN_LOOKS", 0.05)


@pytest.mark.usefixtures("quick")
def test_every_job_comes_to_its_end_whatever_happens_on_the_way(registry: Registry, tmp_path: Path) -> None:
    updates: list[Update] = []
    seeds = [ALWAYS_DIES, TOO_LARGE, HELD_ONCE, NEEDS_PIECES, DIES_TWICE, SUCCEEDS]
    asyncio.run(pool(tmp_path, updates, [CPU, CPU]).run([job(registry, seed) for seed in seeds]))
    outcomes = {seed: [ended.outcome for ended in ends(updates, seed)] for seed in seeds}
    assert outcomes == {
        SUCCEEDS: ["success"],
        NEEDS_PIECES: ["out_of_memory", "out_of_memory", "success"],
        DIES_TWICE: ["died", "died", "success"],
        ALWAYS_DIES: ["died", "died", "failed"],
        TOO_LARGE: ["out_of_memory"] * 4 + ["failed"],
        HELD_ONCE: ["claimed", "already_done"],
    }
    assert ends(updates, NEEDS_PIECES)[-1].summary == "4 pieces"
    assert ends(updates, SUCCEEDS)[-1].summary == "1 pieces"
    assert ends(updates, DIES_TWICE)[-1].summary == "4 pieces"  # the kernel may have killed it for its memory
    assert ends(updates, ALWAYS_DIES)[-1].reason == "the worker was killed by signal SIGKILL"
    assert [ended.over_deaths for ended in ends(updates, ALWAYS_DIES)] == [False, False, True]
    (last,) = [update for update in updates if isinstance(update.event, JobEnded) and update.event.over_deaths]
    assert last.event.log == str(tmp_path / "logs" / f"worker{last.slot}.log")


@pytest.mark.parametrize(
    ("seed", "before"),
    [
        (NEEDS_PIECES, "out_of_memory"),
        (DIES_TWICE, "died"),  # where the kernel kills for memory, nobody says so
    ],
)
def test_jobs_that_take_as_much_memory_start_in_as_many_pieces(
    registry: Registry, tmp_path: Path, seed: int, before: str
) -> None:
    updates: list[Update] = []
    first_job, other = job(registry, seed), job(registry, SUCCEEDS)
    alike = first_job.model_copy(update={"run": first_job.run.model_copy(update={"seed": SHORT})})
    asyncio.run(pool(tmp_path, updates, [CPU]).run([first_job, alike, other]))
    assert [ended.outcome for ended in ends(updates, seed)] == [before, before, "success"]
    assert [ended.summary for ended in ends(updates, SHORT)] == ["4 pieces"]
    assert [ended.summary for ended in ends(updates, SUCCEEDS)] == ["1 pieces"]


def test_a_line_without_end_costs_its_job_alone(registry: Registry, tmp_path: Path) -> None:
    updates: list[Update] = []
    asyncio.run(pool(tmp_path, updates, [CPU]).run([job(registry, seed) for seed in (ENDLESS, SUCCEEDS)]))
    assert [ended.outcome for ended in ends(updates, ENDLESS)] == ["died", "died", "failed"]
    assert "the worker could not be talked to (ValueError)" in ends(updates, ENDLESS)[0].reason
    assert [ended.outcome for ended in ends(updates, SUCCEEDS)] == ["success"]


def test_a_job_that_began_with_less_does_not_take_back_what_is_known(registry: Registry) -> None:
    made = Pool(1, lambda index: pytest.fail("no worker is needed"), lambda update: None, lambda reason: None)
    late, early = (job(registry, NEEDS_PIECES).model_copy(update={"pieces": pieces}) for pieces in (4, 1))
    for one in (late, early):
        made._settle(one, JobEnded(outcome="out_of_memory", seconds=0.1))
    assert list(made.pieces.values()) == [8]


def test_after_a_failure_the_next_job_has_a_fresh_process(registry: Registry, tmp_path: Path) -> None:
    updates: list[Update] = []
    asyncio.run(pool(tmp_path, updates, [CPU]).run([job(registry, seed) for seed in (DIES_TWICE, SUCCEEDS)]))
    workers = list(tmp_path.glob("worker-*.json"))
    assert len(workers) == 3


def test_after_a_mistake_of_the_users_the_worker_goes_on(registry: Registry, tmp_path: Path) -> None:
    updates: list[Update] = []
    asyncio.run(pool(tmp_path, updates, [CPU]).run([job(registry, seed) for seed in (MISTAKEN, SUCCEEDS)]))
    assert [ended.outcome for seed in (MISTAKEN, SUCCEEDS) for ended in ends(updates, seed)] == ["failed", "success"]
    assert len(list(tmp_path.glob("worker-*.json"))) == 1


def test_workers_see_their_device_and_nothing_else_before_they_start(registry: Registry, tmp_path: Path) -> None:
    slots = [Slot(Device("cuda", "a", "GPU-1"), 3), Slot(Device("cuda", "b", "MIG-2"), 3)]
    jobs = [job(registry, 100 + number) for number in range(6)]
    asyncio.run(pool(tmp_path, [], slots).run(jobs))
    seen = [json.loads(path.read_text()) for path in tmp_path.glob("worker-*.json")]
    assert {worker["visible"] for worker in seen} <= {"GPU-1", "MIG-2"}
    assert {worker["threads"] for worker in seen} == {"3"}
    assert {worker["offline"] for worker in seen} == {"1"}
    assert os.environ.get("HF_HUB_OFFLINE") != "1"  # only the workers'


def test_workers_that_cannot_start_stop_everything_with_a_reason(registry: Registry, tmp_path: Path) -> None:
    broken = (sys.executable, "-c", "raise SystemExit('torch is broken')")
    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(pool(tmp_path, [], [CPU], broken).run([job(registry, SUCCEEDS)]))
    (error,) = caught.value.exceptions
    assert isinstance(error, CannotStart)
    assert "exit code 1" in str(error)
    assert "torch is broken" in (tmp_path / "logs" / "worker0.log").read_text()


def test_a_worker_that_cannot_start_costs_its_own_slot_only(registry: Registry, tmp_path: Path) -> None:
    updates: list[Update] = []
    retired: list[str] = []
    slots = [CPU, Slot(Device("cuda", "b", "broken"), 1)]
    the_other_is_at_work = f'[ -e "{tmp_path}/attempts-{SHORT}" ]'
    wait = f"until {the_other_is_at_work}; do sleep 0.05; done"
    command = first(f'if [ "$CUDA_VISIBLE_DEVICES" = broken ]; then {wait}; echo "No driver." >&2; exit 3; fi')
    jobs = [job(registry, SHORT), job(registry, SUCCEEDS), job(registry, DIES_TWICE)]
    asyncio.run(pool(tmp_path, updates, slots, command, retired.append).run(jobs))
    log = tmp_path / "logs" / "worker1.log"
    words = 'the worker ended with exit code 3 (its last words: "No driver"); why stands at the end of'
    assert retired == [f"A worker could not start: {words} {log}."]
    assert {update.slot for update in updates} == {0}
    outcomes = [[ended.outcome for ended in ends(updates, seed)] for seed in (SHORT, SUCCEEDS, DIES_TWICE)]
    assert outcomes == [["success"], ["success"], ["died", "died", "success"]]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", ""),
        (r"\n  \n", ""),
        (r"Traceback:\n  RuntimeError: no driver.\n\n", ' (its last words: "RuntimeError: no driver")'),
        (r" 1 %%|\r 99 %%|\rRuntimeError: \033no driver\000", ' (its last words: "RuntimeError: no driver")'),
        (r"\377 no driver", ' (its last words: "\N{REPLACEMENT CHARACTER} no driver")'),
        ("%0400d", f' (its last words: "{"0" * 300}")'),
        (r"RuntimeError: early\n%070000d\n", f' (its last words: "{"0" * 300}")'),
    ],
)
def test_what_it_said_last_is_of_itself_and_fits_a_sentence(
    registry: Registry, tmp_path: Path, said: str, words: str
) -> None:
    log = tmp_path / "logs" / "worker0.log"
    log.parent.mkdir()
    log.write_text("RuntimeError: of an earlier worker\n", encoding="utf-8")
    command = first(f"printf '{said}' >&2; exit 3")
    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(pool(tmp_path, [], [CPU], command).run([job(registry, SUCCEEDS)]))
    (error,) = caught.value.exceptions
    assert f"the worker ended with exit code 3{words}; why stands at the end of {log}." in str(error)


def test_a_fresh_worker_that_cannot_start_takes_nothing_from_what_was_done(registry: Registry, tmp_path: Path) -> None:
    updates: list[Update] = []
    command = first(f'mkdir "{tmp_path}/begun" || exit 3')
    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(pool(tmp_path, updates, [CPU], command).run([job(registry, n) for n in (SUCCEEDS, DIES_TWICE)]))
    (error,) = caught.value.exceptions
    assert str(error).startswith("No worker is left; runs not done: 1. A worker could not start: ")
    assert [ended.outcome for ended in ends(updates, SUCCEEDS)] == ["success"]
    assert [ended.outcome for ended in ends(updates, DIES_TWICE)] == ["died"]


@pytest.mark.parametrize(("kills", "outcomes"), [(2, ["success"]), (3, [])])
def test_a_worker_that_is_killed_in_its_start_is_started_again_three_times_at_most(
    kills: int, outcomes: list[str], registry: Registry, tmp_path: Path
) -> None:
    updates: list[Update] = []
    command = first(f'echo >> "{tmp_path}/n"; [ $(wc -l < "{tmp_path}/n") -gt {kills} ] || kill -9 $$')
    run = pool(tmp_path, updates, [CPU], command).run([job(registry, SUCCEEDS)])
    if outcomes:
        asyncio.run(run)
    else:
        with pytest.raises(BaseExceptionGroup) as caught:
            asyncio.run(run)
        assert "killed by signal SIGKILL" in str(caught.value.exceptions[0])
    assert [ended.outcome for ended in ends(updates, SUCCEEDS)] == outcomes
    assert len((tmp_path / "n").read_text()) == 3


def test_cancelling_ends_workers_that_are_busy(registry: Registry, tmp_path: Path) -> None:
    async def cancel_soon() -> None:
        task = asyncio.create_task(pool(tmp_path, [], [CPU]).run([job(registry, SLEEPS)]))
        while not list(tmp_path.glob("attempts-*")):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    started = time.monotonic()
    asyncio.run(cancel_soon())
    assert time.monotonic() - started < 30
    (worker,) = [json.loads(path.read_text()) for path in tmp_path.glob("worker-*.json")]
    with pytest.raises(ProcessLookupError):
        os.kill(worker["pid"], 0)


class Scripted:
    """A worker in this process that does what a test says; by default it succeeds at once."""

    def __init__(self, place: asyncio.Event | None = None, none: str = "", deaths: list[str] | None = None) -> None:
        self.place, self.none, self.deaths = place, none, deaths or []

    async def start(self) -> None:
        if self.none:
            raise NoPlace(self.none)
        if self.place is not None:
            await self.place.wait()

    async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
        await asyncio.sleep(0)
        reason = self.deaths.pop() if self.deaths else ""
        return JobEnded(outcome="died" if reason else "success", seconds=0.1, reason=reason)

    async def end(self) -> None:
        pass


def scripted(workers: list[Scripted], updates: list[Update], retired: list[str]) -> Pool:
    return Pool(len(workers), lambda index: workers[index], updates.append, retired.append)


def test_a_slot_without_a_place_is_given_up_and_the_others_do_its_work(registry: Registry) -> None:
    updates: list[Update] = []
    retired: list[str] = []
    jobs = [job(registry, seed) for seed in range(5)]
    asyncio.run(scripted([Scripted(none="no room"), Scripted()], updates, retired).run(jobs))
    assert retired == ["no room"]
    assert [ends(updates, seed)[-1].outcome for seed in range(5)] == ["success"] * 5
    assert {update.slot for update in updates} == {1}


def test_without_any_place_the_end_is_a_sentence(registry: Registry) -> None:
    workers = [Scripted(none="no room"), Scripted(none="no room either")]
    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(scripted(workers, [], []).run([job(registry, 0), job(registry, 1)]))
    assert [str(error) for error in caught.value.exceptions] == ["No worker is left; runs not done: 2. no room either"]


def test_after_a_success_over_whose_scoring_the_worker_ended_the_next_job_has_a_fresh_one(registry: Registry) -> None:
    updates: list[Update] = []
    hired: list[Scripted] = []

    class Ends(Scripted):
        async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
            return JobEnded(outcome="success", seconds=0.1, reason="killed", worker_ended=job.run.seed == 0)

    def hire(index: int) -> Scripted:
        hired.append(Ends())
        return hired[-1]

    pool = Pool(1, hire, updates.append, lambda reason: None)
    asyncio.run(pool.run([job(registry, seed) for seed in range(3)]))
    assert [[ended.outcome for ended in ends(updates, seed)] for seed in range(3)] == [["success"]] * 3
    assert len(hired) == 2


def test_a_slot_that_waits_for_its_place_holds_no_job_and_is_not_waited_for(registry: Registry) -> None:
    updates: list[Update] = []
    never = asyncio.Event()
    jobs = [job(registry, seed) for seed in range(3)]
    pool = scripted([Scripted(place=never), Scripted()], updates, [])
    asyncio.run(asyncio.wait_for(pool.run(jobs), 30))
    assert {update.slot for update in updates} == {1}
    assert all(ends(updates, seed) for seed in range(3))


@pytest.mark.usefixtures("quick")
def test_what_another_scheduler_holds_is_waited_for_without_a_worker(registry: Registry) -> None:
    updates: list[Update] = []
    alive: set[int] = set()
    looks: list[set[int]] = []  # the workers that were there when it was looked at

    class Finds(Scripted):
        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

        async def start(self) -> None:
            alive.add(self.index)

        async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
            await asyncio.sleep(0)
            held = job.run.seed == 0 and len(looks) < 6
            return JobEnded(outcome="claimed" if held else "success", seconds=0.1)

        async def end(self) -> None:
            alive.discard(self.index)

    def is_held(job: Job) -> bool:
        looks.append(set(alive))
        return len(looks) < 6

    pool = Pool(2, Finds, updates.append, lambda reason: None, is_held)
    asyncio.run(asyncio.wait_for(pool.run([job(registry, 0), job(registry, 1)]), 30))
    assert [ended.outcome for ended in ends(updates, 0)] == ["claimed", "success"]
    assert [ended.outcome for ended in ends(updates, 1)] == ["success"]
    assert looks == [set()] * 6


def test_a_job_whose_worker_died_goes_on_at_a_slot_that_had_nothing_left_to_do(registry: Registry) -> None:
    """The last job dies with its node, whose slot finds no new place: the other slot has waited for just that."""
    updates: list[Update] = []

    class Late(Scripted):
        async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
            while not ends(updates, 1):
                await asyncio.sleep(0)
            self.place = asyncio.Event()  # from now on there is no place
            return JobEnded(outcome="died", seconds=0.1, reason="the node is gone")

    workers = [Late(), Scripted()]
    asyncio.run(asyncio.wait_for(scripted(workers, updates, []).run([job(registry, 0), job(registry, 1)]), 30))
    assert [ended.outcome for ended in ends(updates, 0)] == ["died", "success"]
    assert updates[-1].slot == 1
