"""The options that say where runs are made, and the choice they lead to."""

import argparse
import os

from benchmark.errors import UserError
from benchmark.registry import OWN
from benchmark.schedule import Backend, LocalBackend


def add_backend_options(parser: argparse.ArgumentParser) -> None:
    """Options of machines beyond this one."""
    group = parser.add_argument_group("many machines", "Runs on the nodes of a Ray cluster; docs/cluster.md says how.")
    group.add_argument(
        "--backend", choices=("local", "ray"), default="local", help="this machine (default), or a Ray cluster"
    )
    group.add_argument(
        "--address",
        metavar="ADDRESS",
        help="HOST:PORT of the cluster's head (default: RAY_ADDRESS, else one that runs here, else one is started)",
    )


def choose_backend(arguments: argparse.Namespace) -> Backend:
    """The backend that was asked for. Ray is imported only here, and only if it was.

    Raises UserError where Ray is not installed or there is no such cluster.
    """
    if arguments.backend == "local":
        if arguments.address is not None:
            raise UserError("--address names a Ray cluster: it goes with --backend ray.")
        return LocalBackend()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing is reported to anyone; Ray reads it when it is imported
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        from benchmark.cluster.connection import RayBackend
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise UserError("--backend ray needs Ray: pip install -r requirements-cluster.txt") from None
    return RayBackend(arguments.address, arguments.experiments.resolve() / OWN)
