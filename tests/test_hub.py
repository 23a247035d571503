"""Encoders from a hub, a small one on this machine: fetched once by prepare, then used without any network."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from benchmark.encoders import hub_cache
from benchmark.models import build_encoder
from benchmark.registry import load_registry
from tests.conftest import run_module

COMMIT = "c" * 40

# Put on the path of every process of a command: whatever connects anywhere is noted and refused.
GUARD = """
import os, socket
def _refuse(self, address):
    if self.family != socket.AF_UNIX:
        with open(os.environ["NETWORK_LOG"], "a") as log:
            print(address, file=log)
        raise ConnectionRefusedError(f"no network here: {address}")
socket.socket.connect = socket.socket.connect_ex = _refuse
socket.getaddrinfo = lambda *address, **_: _refuse(socket.socket(), address)
"""


class Hub(ThreadingHTTPServer):
    """A hub with one model, ``org/name``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        hub: Hub = self.server
        hub.asked.append(self.path)
        path = self.path.partition("?")[0].strip("/")
        content, headers = None, {}
        names = sorted(file.name for file in hub.folder.iterdir())
        if path.startswith("api/models/org/name/tree/"):
            files = [
                {"type": "file", "oid": "b" * 40, "size": (hub.folder / name).stat().st_size, "path": name}
                for name in names
            ]
            content = json.dumps(files).encode()
        elif path.startswith("api/models/org/name"):
            content = json.dumps(
                {"id": "org/name", "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
            ).encode()
        elif "/resolve/" in path and (hub.folder / path.rpartition("/")[2]).is_file():
            content = (hub.folder / path.rpartition("/")[2]).read_bytes()
            headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
        self.send_response(200 if content is not None else 404)
        for name, value in ({"Content-Length": str(len(content or b""))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if body and content:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(experiments: Path, tmp_path: Path) -> Iterator[Hub]:
    """A running hub, and the profile ``tiny`` with its base encoder there."""
    build_encoder(load_registry(experiments).encoders["tiny_base"], tmp_path / "model")
    (tmp_path / "model" / "pytorch_model.bin").write_bytes(b"never asked for")
    (tmp_path / "model" / "modeling_evil.py").write_text("raise SystemExit")
    encoders = yaml.safe_load((experiments / "encoders.yaml").read_text())
    encoders["encoders"]["tiny_base"]["source"] = {"kind": "pretrained", "id": "org/name", "revision": "main"}
    (experiments / "encoders.yaml").write_text(yaml.safe_dump(encoders, sort_keys=False))
    server = Hub(tmp_path / "model")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"XDG_CACHE_HOME": "/x"},
        {"HF_HOME": "~/h"},
        {"HF_HOME": "/h", "HF_HUB_CACHE": "~/c"},
        {"HUGGINGFACE_HUB_CACHE": "/older"},
    ],
)
def test_the_hubs_cache_is_looked_for_where_the_hub_has_it(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    environment = {name: value for name, value in os.environ.items() if name not in names} | variables
    show = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
    call = subprocess.run([sys.executable, "-c", show], env=environment, capture_output=True, text=True, check=True)
    assert str(hub_cache()) == call.stdout.strip()


def test_prepare_fetches_once_and_nothing_later_touches_the_network(
    hub: Hub, experiments: Path, tmp_path: Path
) -> None:
    environment = {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(tmp_path / "hf"),
        "BENCHMARK_ENCODER_DIR": "",
        "BENCHMARK_CACHE_DIR": str(tmp_path / "cache"),
    }
    options = ["--profile", "tiny", "--experiments", experiments, "--results-dir", tmp_path / "results"]
    before = run_module("run", *options, env=environment)
    assert before.returncode == 2
    assert 'The encoder "tiny_base" (org/name) is not on this machine' in before.stderr
    assert not hub.asked

    prepare = run_module("prepare", *options, env=environment)
    assert prepare.returncode == 0, prepare.stdout + prepare.stderr
    assert "fetching org/name from the hub" in prepare.stdout
    assert f"revision {COMMIT}" in prepare.stdout
    fetched = {path.rpartition("/")[2] for path in hub.asked if "/resolve/" in path}
    assert fetched == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}

    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    guarded = environment | {"PYTHONPATH": str(tmp_path / "guard"), "NETWORK_LOG": str(tmp_path / "network.log")}
    arguments = ["--table", "main", "--datasets", "hwu64", "--methods", "bert", "hs_rau"]
    run = run_module("run", *options, *arguments, env=guarded)
    assert run.returncode == 0, run.stdout + run.stderr
    again = run_module("prepare", *options, env=guarded)
    assert again.returncode == 0, again.stdout + again.stderr
    assert not (tmp_path / "network.log").exists()
    results = [json.loads(path.read_text()) for path in (tmp_path / "results" / "tiny").glob("*.json")]
    assert {result["encoder"]["revision"] for result in results} == {COMMIT}
    assert {result["encoder"]["origin"] for result in results} == {"hub"}


def test_the_guard_does_guard(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    (tmp_path / "sitecustomize.py").write_text(GUARD)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NETWORK_LOG": str(tmp_path / "network.log")}
    script = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')"
    call = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=False)
    assert call.returncode != 0
    assert "127.0.0.1" in (tmp_path / "network.log").read_text()


def test_own_data_of_a_hub_that_cannot_be_reached_are_one_sentence(experiments: Path, tmp_path: Path) -> None:
    arguments = ["--data", "owner/name", "--dry-run", "--experiments", experiments, "--results-dir", tmp_path]
    environment = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0", "BENCHMARK_CACHE_DIR": str(tmp_path)}
    call = run_module("run", *arguments, env=environment)
    assert call.returncode == 2
    assert call.stderr.strip().endswith("the hub has no such data set or cannot be reached (ConnectError).")


def test_an_unknown_model_and_a_silent_hub_are_named(hub: Hub, experiments: Path, tmp_path: Path) -> None:
    encoders = yaml.safe_load((experiments / "encoders.yaml").read_text())
    encoders["encoders"]["tiny_base"]["source"]["id"] = "org/other"
    encoders["encoders"]["tiny_part"] = encoders["encoders"]["tiny_base"] | {"layers": 1}
    (experiments / "encoders.yaml").write_text(yaml.safe_dump(encoders, sort_keys=False))
    profiles = yaml.safe_load((experiments / "profiles.yaml").read_text())
    profiles["profiles"]["tiny"]["encoders"]["part"] = "tiny_part"
    (experiments / "profiles.yaml").write_text(yaml.safe_dump(profiles, sort_keys=False))
    environment = {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(tmp_path / "hf"),
        "BENCHMARK_CACHE_DIR": str(tmp_path / "cache"),
        "BENCHMARK_ENCODER_DIR": "",
    }
    call = run_module("prepare", "--profile", "tiny", "--experiments", experiments, env=environment)
    assert call.returncode == 2
    assert call.stderr.count("org/other (revision main) could not be fetched from the hub") == 1
    assert call.stdout.count("fetching org/other") == 1  # both parts are of one model, which is asked for once
    assert "Traceback" not in call.stderr
