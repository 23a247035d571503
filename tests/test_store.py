"""Results on disk: what is written is read, what is damaged is named and kept, nothing half-written counts."""

import base64
import errno
import gc
import json
import os
import re
import resource
import signal
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmark.errors import UserError
from benchmark.registry import Registry, Subject, method_view
from benchmark.specs import readable_name
from benchmark.store import CannotClaim, Result, ResultFolder, claim, is_held, packed_size
from benchmark.store.logits import pack
from tests.results import failed_result, made_logits, made_result


@pytest.fixture
def result(registry: Registry) -> Result:
    return made_result(registry, Subject("tnews", "base", "bert"))


@pytest.fixture
def folder(tmp_path: Path) -> ResultFolder:
    return ResultFolder(tmp_path / 'with "quotes" and spaces', "tiny")


def test_a_result_comes_back_as_it_was_with_its_logits(folder: ResultFolder, result: Result) -> None:
    logits = made_logits(0)
    folder.save(result, logits)
    (back,), unusable = folder.read_all()
    assert not unusable
    assert back.model_copy(update={"logits": None}) == result
    assert folder.read(result.run) == back
    assert folder.has_logits(back)
    for name in ("validation_logits", "validation_labels", "test_logits", "test_labels"):
        np.testing.assert_array_equal(getattr(folder.read_logits(back), name), getattr(logits, name))


def test_the_file_is_strict_json_with_full_precision_and_a_readable_name(folder: ResultFolder, result: Result) -> None:
    folder.save(result)
    path = folder.path(result.run)
    text = path.read_text(encoding="ascii")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    content = json.loads(text, parse_constant=refuse)
    assert content["views"][0]["scores"]["ece"] == result.views[0].scores["ece"]
    assert None in content["views"][0]["reliability"]["accuracy"]  # the mean of an empty bin
    assert path.name.startswith("tiny_tnews.clean.tiny_base.linear.cross_entropy.seed0.")


def test_draws_are_numbers_of_32_bits_in_base64_little_end_first(folder: ResultFolder, result: Result) -> None:
    folder.save(result)
    text = folder.path(result.run).read_text(encoding="ascii")
    draws = result.views[0].resampled.f1
    written = base64.b64decode(json.loads(text)["views"][0]["resampled"]["f1"])
    assert len(draws) == result.views[0].view.resamples > 0
    assert struct.unpack(f"<{len(draws)}f", written) == tuple(draws)
    assert folder.read(result.run).views[0].resampled.f1 == draws


def with_draws(text: str, draws: str) -> str:
    """The text of a result with other draws of the first view's F1."""
    return re.sub(r'("resampled": \{"f1": )"[^"]*"', rf'\1"{draws}"', text, count=1)


DAMAGE = {
    "empty": lambda text: "",
    "blank": lambda text: " \n",
    "cut in half": lambda text: text[: len(text) // 2],
    "an object": lambda text: "{}",
    "a list": lambda text: "[]",
    "a word": lambda text: "null",
    "not JSON": lambda text: "results!",
    "another schema": lambda text: text.replace('"schema_version": 4', '"schema_version": 1'),
    "another identity": lambda text: text.replace('"run_id": "', '"run_id": "0'),
    "another setting": lambda text: text.replace('"learning_rate": 0.003', '"learning_rate": 0.004'),
    "not a number": lambda text: text.replace('"entropy": 1.0', '"entropy": NaN'),
    "no number for a score": lambda text: text.replace('"accuracy": ', '"accuracy": "much", "was": ', 1),
    "a score gone": lambda text: re.sub(r'"f1": [\d.e-]+, ', "", text, count=1),
    "a split gone": lambda text: re.sub(r', "test": \d+', "", text, count=1),
    "a loss term gone": lambda text: re.sub(r'"terms": \[[^\]]*\]', '"terms": []', text, count=1),
    "a negative draw": lambda text: with_draws(text, "AAAAvw=="),  # -0.5
    "a draw that is not a number": lambda text: with_draws(text, "AADAfw=="),
    "a draw too few": lambda text: with_draws(text, "AAAAPw=="),  # 0.5
    "draws of no such measure": lambda text: text.replace('"measures": {"top_label_ece": ', '"measures": {"f1": ', 1),
    "a bin too few": lambda text: re.sub(r'("reliability": \{"count": \[)\d+, ', r"\1", text, count=1),
    "a label's score too many": lambda text: text.replace(
        '"per_label": {"precision": [', '"per_label": {"precision": [0.5, ', 1
    ),
    "a label's count too many": lambda text: text.replace('"train_label_counts": [', '"train_label_counts": [7, '),
    "half a draw": lambda text: with_draws(text, "AAA="),
    "a word for draws": lambda text: with_draws(text, "much!"),
    "nothing among the labels' scores": lambda text: text.replace('"recall": [', '"recall": [null, '),
    "not a number among them": lambda text: text.replace(
        '"per_label": {"precision": [', '"per_label": {"precision": [NaN, '
    ),
    "one value in place of many": lambda text: text.replace(
        '"per_label": {"precision": [', '"per_label": {"precision": 1, "x": ['
    ),
    "another accuracy": lambda text: re.sub(r'"accuracy": 0\.\d+', '"accuracy": 0.999', text, count=1),
    "another F1": lambda text: re.sub(r'("scores": .*?"f1": )0\.\d+', r"\g<1>0.999", text, count=1),
    "another ECE of a label": lambda text: re.sub(r'("ece": \[)[\d.e-]+', r"\g<1>0.25", text, count=1),
    "an unknown key": lambda text: text.replace('"status"', '"extra": 1, "status"'),
    "no scores": lambda text: text[: text.index('"views": ')] + '"views": [],\n' + text[text.index('"logits": ') :],
}


# Damage in what an outline does not hold: named as soon as it is needed.
PASSED_OVER = {
    "a split gone",
    "a loss term gone",
    "not a number",
    "a negative draw",
    "a draw that is not a number",
    "a draw too few",
    "draws of no such measure",
    "a bin too few",
    "a label's score too many",
    "a label's count too many",
    "half a draw",
    "a word for draws",
    "nothing among the labels' scores",
    "not a number among them",
    "one value in place of many",
    "another accuracy",
    "another F1",
    "another ECE of a label",
    "an unknown key",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_named_moved_aside_and_never_counted(folder: ResultFolder, result: Result, name: str) -> None:
    folder.save(result)
    path = folder.path(result.run)
    damaged = DAMAGE[name](path.read_text(encoding="ascii"))
    assert damaged != path.read_text(encoding="ascii")
    path.write_text(damaged, encoding="ascii")
    results, (unusable,) = folder.read_all()
    assert results == []
    assert unusable.path == path
    assert unusable.reason
    assert folder.read(result.run) is None
    outlines, named = folder.outlines()
    if name in PASSED_OVER:
        with pytest.raises(UserError, match="delete it, and the run is made again"):
            folder.whole(outlines[0])
    else:
        assert [one.path for one in named] == [path]
    aside = folder.set_aside(unusable)
    assert aside.read_text(encoding="ascii") == damaged
    assert not path.exists()
    folder.save(result)
    path.write_text(damaged, encoding="ascii")
    assert folder.set_aside(folder.read_all()[1][0]) != aside  # the first one stays


def test_a_folder_where_a_result_should_be_is_moved_aside_whole(folder: ResultFolder, result: Result) -> None:
    path = folder.path(result.run)
    for content in ("first", "second"):
        path.mkdir(parents=True)
        (path / content).write_text(content, encoding="ascii")
        (unusable,) = folder.outlines()[1]
        aside = folder.set_aside(unusable)
        assert (aside / content).read_text(encoding="ascii") == content
    folder.save(result)
    assert folder.read(result.run) == result


def test_room_is_asked_for_without_a_trace(folder: ResultFolder, result: Result) -> None:
    logits = made_logits(0)
    held_out, n_test = len(logits.validation_labels) + len(logits.test_labels), len(logits.test_labels)
    needed = packed_size(held_out, n_test, logits.test_logits.shape[1], 0)
    assert len(pack(logits)) <= needed <= len(pack(logits)) + 4096
    passes = replace(logits, mc_dropout={5: logits.test_logits, 30: logits.test_logits})
    with_passes = packed_size(held_out, n_test, logits.test_logits.shape[1], 2)
    assert len(pack(passes)) <= with_passes <= len(pack(passes)) + 6144
    folder.require_room(needed)
    assert list((folder.folder / "logits").iterdir()) == []
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (needed - 1, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            folder.require_room(needed)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert list((folder.folder / "logits").iterdir()) == []


def test_a_folder_that_nothing_can_be_written_in_is_told_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, dir: Path, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(dir))

    monkeypatch.setattr("benchmark.store.folder.tempfile.TemporaryFile", refused)
    with pytest.raises(UserError, match=r"/tiny cannot hold results: Permission denied\."):
        ResultFolder(tmp_path, "tiny").make()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told_before_anything_is_trained(
    tmp_path: Path, result: Result, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    folder = ResultFolder(tmp_path, "tiny")
    folder.make()
    assert list(folder.claims.iterdir()) == []
    monkeypatch.setattr("fcntl.flock", refused)
    sentence = f"The file system of {folder.claims} has no locks ({os.strerror(number)}); choose a folder on another"
    with pytest.raises(CannotClaim, match=re.escape(sentence)):
        folder.make()
    assert list(folder.claims.iterdir()) == []
    with (
        pytest.raises(CannotClaim, match=rf"\.lock cannot be locked: {os.strerror(number)}\.$"),
        claim(folder.claims, result.run),
    ):
        pytest.fail("it was claimed")


@pytest.mark.parametrize("in_place", ["tiny", "results", "tiny/claims"])
def test_a_link_that_leads_nowhere_is_no_folder(tmp_path: Path, in_place: str) -> None:
    link = tmp_path / "results" / in_place if in_place != "results" else tmp_path / "results"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match=f"{link} cannot hold results: a file, or a link that leads nowhere, stands in"):
        ResultFolder(tmp_path / "results", "tiny").make()


def test_where_a_file_can_have_no_second_name_it_is_renamed(
    folder: ResultFolder, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refused)
    folder.save(result)
    folder.path(result.run).write_text("{", encoding="ascii")
    (unusable,) = folder.outlines()[1]
    target = folder.set_aside(unusable)
    assert target.read_text(encoding="ascii") == "{"
    assert not folder.path(result.run).exists()


def test_a_link_that_leads_nowhere_is_moved_aside_and_nothing_written_where_it_leads(
    folder: ResultFolder, result: Result, tmp_path: Path
) -> None:
    path, target = folder.path(result.run), tmp_path / "elsewhere" / "gone"
    target.parent.mkdir()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    (problem,) = folder.read_all()[1]
    moved = folder.set_aside(problem)
    assert moved is not None
    assert moved.is_symlink()
    folder.save(result)
    assert folder.read(result.run) == result
    assert not list(target.parent.iterdir())


def test_what_is_a_result_by_now_is_not_moved_aside(folder: ResultFolder, result: Result) -> None:
    folder.save(result)
    path = folder.path(result.run)
    content = path.read_text(encoding="ascii")
    path.write_text("{", encoding="ascii")
    (unusable,) = folder.outlines()[1]
    path.write_text(content, encoding="ascii")  # another command has made it again meanwhile
    assert folder.set_aside(unusable) is None
    assert folder.read(result.run) == result
    path.unlink()
    assert folder.set_aside(unusable) is None


def test_an_outline_is_the_result_as_planning_sees_it(registry: Registry, folder: ResultFolder, result: Result) -> None:
    folder.save(result, made_logits(0))
    folder.save(failed_result(result.run.model_copy(update={"seed": 1})))
    (wholes, _), (outlines, _) = folder.read_all(), folder.outlines()
    wanted = [view.view for view in result.views]
    wanted.append(method_view(registry, "mc_dropout"))
    for whole, outline in zip(wholes, outlines, strict=True):
        for name in ("run_id", "run", "status", "logits", "failure"):
            assert getattr(outline, name) == getattr(whole, name)
        assert outline.unscored(wanted) == whole.unscored(wanted)
        assert outline.scorable(wanted) == whole.scorable(wanted) == wanted[:-1]
        assert folder.has_logits(outline) == folder.has_logits(whole)
        assert folder.whole(outline) == whole


def test_a_result_under_another_name_is_not_counted(folder: ResultFolder, result: Result) -> None:
    folder.save(result)
    path = folder.path(result.run)
    path.rename(path.with_name(path.name.replace("seed0", "seed1")))
    results, (unusable,) = folder.read_all()
    assert not results
    assert "its name is not the name of the run" in unusable.reason


def test_a_failure_is_written_unless_a_good_result_is_there(folder: ResultFolder, result: Result) -> None:
    failed = failed_result(result.run)
    folder.save_failure(failed)
    assert folder.read(result.run) == failed
    folder.save(result)
    folder.save_failure(failed)
    assert folder.read(result.run) == result


def test_views_come_beside_others_and_in_place_of_their_own(result: Result) -> None:
    first, other = result.views
    anew = first.model_copy(update={"scores": first.scores | {"ece": 0.5}})
    assert result.with_views([anew]).views == [other, anew]
    assert result.model_copy(update={"views": [other]}).with_views([first]).views == [other, first]


def test_why_a_view_could_not_be_scored_is_kept_until_it_is(folder: ResultFolder, result: Result) -> None:
    first, other = result.views
    without = result.model_copy(update={"views": [other]}).with_views([], {first.view_id: "no luck"})
    folder.save(without)
    assert folder.read(result.run).unscored_because == {first.view_id: "no luck"}
    assert without.with_views([]).unscored_because == {first.view_id: "no luck"}
    assert without.with_views([first]).unscored_because == {}


def test_binary_rubbish_is_named(folder: ResultFolder, result: Result) -> None:
    folder.save(result)
    folder.path(result.run).write_bytes(b"\xff\xfe\x00")
    assert "it does not hold what a result holds" in folder.read_all()[1][0].reason


def test_changed_or_lost_logits_are_no_logits(folder: ResultFolder, result: Result) -> None:
    folder.save(result, made_logits(0))
    saved = folder.read(result.run)
    path = folder.folder / "logits" / saved.logits.file
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    assert folder.read_logits(saved) is None
    path.unlink()
    assert folder.read_logits(saved) is None
    assert not folder.has_logits(saved)


def test_a_logits_path_cannot_leave_the_folder(folder: ResultFolder, result: Result, tmp_path: Path) -> None:
    folder.save(result, made_logits(0))
    saved = folder.read(result.run)
    outside = saved.model_copy(
        update={"logits": saved.logits.model_copy(update={"file": f"../../{saved.logits.file}"})}
    )
    assert folder.read_logits(outside) is not None  # the name alone is looked at, below logits/


def test_pickled_arrays_are_refused(folder: ResultFolder, result: Result) -> None:
    import hashlib
    import io

    folder.save(result, made_logits(0))
    saved = folder.read(result.run)
    buffer = io.BytesIO()
    np.savez(buffer, validation_logits=np.array([{"x": 1}], dtype=object), allow_pickle=True)
    (folder.folder / "logits" / saved.logits.file).write_bytes(buffer.getvalue())
    record = saved.logits.model_copy(update={"sha256": hashlib.sha256(buffer.getvalue()).hexdigest()})
    with pytest.raises(ValueError, match="allow_pickle"):
        folder.read_logits(saved.model_copy(update={"logits": record}))


def test_a_write_that_fails_leaves_the_old_state(
    folder: ResultFolder, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.save(result)
    path = folder.path(result.run)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folder.save(result.model_copy(update={"views": result.views[:1]}))
    assert path.read_bytes() == before
    assert [item.name for item in folder.folder.iterdir()] == [path.name]


def test_what_is_no_file_is_no_result_and_is_not_waited_for(folder: ResultFolder, result: Result) -> None:
    folder.save(result)
    os.mkfifo(folder.folder / "pipe.json")
    (found,), (problem,) = folder.read_all()
    assert found.run_id == result.run_id
    assert problem.reason == "it is no file"


def test_a_failed_result_is_read_but_is_no_success(folder: ResultFolder, result: Result) -> None:
    folder.save(failed_result(result.run))
    (back,), _ = folder.read_all()
    assert back.status == "failed"
    assert back.failure.reason == "the loss was not finite in epoch 1"


def test_inconsistent_results_cannot_be_made(result: Result) -> None:
    content = result.model_dump(mode="json")
    assert Result.model_validate_json(json.dumps(content)) == result
    view, rows, counts = content["views"][0], content["data"]["rows"], content["data"]["train_label_counts"]
    bins = view["reliability"]
    for change, problem in (
        ({"status": "failed"}, "a failure belongs to a failed result"),
        ({"run_id": "0" * 64}, "run_id is not the identity of the run"),
        ({"training": None}, "a successful result has data, encoder and training"),
        ({"data": content["data"] | {"fingerprint": "f" * 64}}, "the data are not those of the run"),
        ({"data": content["data"] | {"dataset": "other"}}, "the data are not those of the run"),
        ({"encoder": content["encoder"] | {"encoder": "other"}}, "the encoder is not that of the run"),
        ({"encoder": content["encoder"] | {"fingerprint": "f" * 64}}, "the encoder is not that of the run"),
        ({"data": content["data"] | {"train_label_counts": [1, *counts[1:]]}}, "do not add up to all of them"),
        ({"data": content["data"] | {"train_label_counts": counts[::-1]}}, "as the rarest are not the rarest"),
        ({"data": content["data"] | {"rows": rows | {"test": rows["test"] + 1}}}, "not of as many rows as its split"),
        ({"views": [view | {"scores": view["scores"] | {"aurc": 1.5}}]}, "aurc is above 1, which no share is"),
        ({"views": [view | {"scores": view["scores"] | {"top_label_ece": 0.001}}]}, "top_label_ece is not what"),
        ({"views": [view | {"scores": view["scores"] | {"confidence": 0.5}}]}, "confidence is not what"),
        ({"views": [view | {"reliability": bins | {"count": [2] * 60}}]}, "labels are not of as many rows"),
    ):
        with pytest.raises(ValueError, match=problem):
            Result.model_validate_json(json.dumps(content | change))


def test_the_rarest_labels_are_ranked_by_training_count_then_order(result: Result) -> None:
    data = result.data.model_copy(update={"train_label_counts": [5, 2, 9, 2, 1]})
    assert [data.rarest(rank) for rank in range(1, 7)] == [4, 1, 3, 0, 2, None]


def test_a_claim_is_held_by_one_and_given_back(folder: ResultFolder, result: Result) -> None:
    with claim(folder.claims, result.run) as ours:
        assert ours
        with claim(folder.claims, result.run) as theirs:
            assert not theirs
        assert is_held(folder.claims, result.run)
    assert not is_held(folder.claims, result.run)
    with claim(folder.claims, result.run) as again:
        assert again


def test_a_claim_that_cannot_be_tried_for_is_one_sentence(folder: ResultFolder, result: Result) -> None:
    with claim(folder.claims, result.run):
        pass
    (path,) = folder.claims.iterdir()
    assert path.stat().st_mode & 0o777 == 0o666  # a folder may be several people's
    path.unlink()
    path.mkdir()
    with (
        pytest.raises(CannotClaim, match=r"\.lock cannot be locked: Is a directory; "),
        claim(folder.claims, result.run),
    ):
        pytest.fail("it was claimed")
    assert not is_held(folder.claims, result.run)


def test_the_claim_of_a_killed_process_is_free(folder: ResultFolder, result: Result, tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys
    import time

    from tests.conftest import PROJECT

    (tmp_path / "run.json").write_text(result.run.model_dump_json())
    script = (
        "import sys, time; from pathlib import Path\n"
        "from benchmark.specs import RunSpec; from benchmark.store import claim\n"
        "run = RunSpec.model_validate_json(Path(sys.argv[1]).read_text())\n"
        "with claim(Path(sys.argv[2]), run) as ours:\n    print(ours, flush=True)\n    time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "run.json", folder.claims],
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    try:
        assert holder.stdout.readline().strip() == "True"
        with claim(folder.claims, result.run) as ours:
            assert not ours
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        deadline = time.monotonic() + 5
        taken = False
        while not taken and time.monotonic() < deadline:
            with claim(folder.claims, result.run) as taken:
                pass
        assert taken
    finally:
        holder.kill()
        holder.wait()


def test_names_of_different_runs_do_not_meet(registry: Registry) -> None:
    names = [
        readable_name(made_result(registry, Subject("tnews", "base", method)).run)
        for method in ("poscal", "without_both", "bert", "ls")
    ]
    assert len(set(names)) == 4


def test_logits_that_cannot_be_written_leave_the_old_result_with_its_own(
    folder: ResultFolder, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.save(result, made_logits(0))
    replaces = os.replace

    def full(source: Path, target: Path) -> None:
        if target.suffix == ".npz":
            raise OSError(28, "No space left on device")
        replaces(source, target)

    monkeypatch.setattr("benchmark.whole_files.os.replace", full)
    with pytest.raises(OSError, match="No space left"):
        folder.save(result, made_logits(1))
    old = folder.read_logits(folder.read(result.run))
    np.testing.assert_array_equal(old.test_logits, made_logits(0).test_logits)


def test_new_logits_take_the_place_of_the_old_ones(folder: ResultFolder, result: Result) -> None:
    for seed in (0, 1):
        folder.save(result, made_logits(seed))
    saved = folder.read(result.run)
    assert [path.name for path in (folder.folder / "logits").iterdir()] == [saved.logits.file]


def test_garbage_is_looked_for_again_after_reading(folder: ResultFolder) -> None:
    folder.read_all()
    assert gc.isenabled()
