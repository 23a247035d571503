"""Functions of the user's own, named ``module:function``: found, hashed without running them, and loaded."""

import ast
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Collection
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmark.errors import UserError, first_line, nearest

_OWN = "benchmark_own_"  # before the names of the user's modules, so that no installed one is taken for them
# The folder that is looked into before installed packages; of the process, for functions are called from deep within.
_folders: list[Path] = []


def look_in(folder: Path) -> None:
    """From now on, find modules in this folder (and no other one) before installed ones."""
    _folders[:] = [folder.resolve()]


def source_hash(name: str, folder: Path, n_arrays: int, settings: Collection[str]) -> str:
    """The SHA-256 of the file of ``module:function``, which is not run. It will be called with so many arrays, and
    with ``settings`` by name.

    Raises UserError where there is no such module in ``folder`` or among the installed ones, its file is not Python, it
    defines no such function or class at its top, it takes no such settings or others beside them, or imports another
    file of the folder, whose changes the hash would not see.
    """
    module, _, function = name.partition(":")
    path, is_own = _find(module, [folder])
    content = path.read_bytes()
    try:
        tree = ast.parse(content)
    except (RecursionError, MemoryError):
        raise UserError(f"{path}: this is nested too deeply for Python to read.") from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UserError(f"{path}:{line}: this is not Python: {getattr(error, 'msg', error)}.") from None
    if is_own:
        _stands_alone(path, tree)
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if function not in defined:
        raise UserError(f'{path} defines no "{function}"; {nearest(function, defined)}')
    if (node := _as_defined(tree, function)) is not None:
        _takes(path, node, n_arrays, settings)
    return hashlib.sha256(content).hexdigest()


def _takes(path: Path, node: ast.FunctionDef, n_arrays: int, settings: Collection[str]) -> None:
    """UserError where a function, given so many arrays first, takes no such settings by name, or needs others."""
    arguments = node.args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    needed = positional[n_arrays : len(positional) - len(arguments.defaults)]
    only_by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    needed += [argument.arg for argument, default in only_by_name if default is None]
    by_name = [*positional[n_arrays:], *(argument.arg for argument in arguments.kwonlyargs)]
    here = f"{path}:{node.lineno}: {node.name}"
    if len(positional) < n_arrays and arguments.vararg is None:
        raise UserError(f"{here} is given {n_arrays} arguments before its settings, and takes {len(positional)}.")
    for setting in settings:
        if setting in positional[:n_arrays]:
            raise UserError(f'{here} is given "{setting}" as an array; it is no setting.')
        if setting not in by_name and arguments.kwarg is None:
            raise UserError(f'{here} takes no setting "{setting}"; {nearest(setting, by_name)}')
    for name in needed:
        if name not in settings:
            raise UserError(f'{here} needs "{name}" among the settings.')


def _as_defined(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """The function of that name, where what it takes stands in its definition: of a class its bases may say, of a
    function that is decorated or bound anew something else.
    """
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
    bound = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    if len(found) != 1 or isinstance(found[0], ast.ClassDef) or any(node.id == name for node in bound):
        return None
    return None if found[0].decorator_list else found[0]


def _stands_alone(path: Path, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or ""] if node.level == 0 else [path.stem]
        else:
            continue
        for module in filter(None, imported):
            if _is_beside(path, module):
                raise UserError(
                    f"{path}:{node.lineno}: a file of own functions is read by itself and cannot import one beside it; "
                    "put what it needs into it, or into an installed package."
                )


def _is_beside(path: Path, module: str) -> bool:
    """Whether it is a file or package of the same folder, and none that Python would find elsewhere."""
    folder, root = path.parent, module.partition(".")[0]
    if f"{module}.".startswith(f"{folder.parent.name}.{folder.name}."):
        return True
    is_there = root == path.stem or (folder / f"{root}.py").is_file() or (folder / root).is_dir()
    return is_there and importlib.util.find_spec(root) is None


def load(name: str, sha256: str | None) -> Callable[..., Any]:
    """The function itself.

    Raises UserError where its source is not the one of that hash any more: a result says which code made it.
    """
    module, _, function = name.partition(":")
    path, is_own = _find(module, _folders)
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if sha256 is not None and digest != sha256:
        raise UserError(f"{path} has changed since this was planned; start the benchmark again.")
    made = _imported(module, path, content, digest) if is_own else importlib.import_module(module)
    found: Callable[..., Any] = getattr(made, function)
    return found


def call(name: str, sha256: str | None, /, *arguments: Any, **settings: Any) -> Any:
    """What the function gives; UserError, naming it, where it fails."""
    return tried(name, tried(name, load, name, sha256), *arguments, **settings)


def tried(name: str, function: Callable[..., Any], /, *arguments: Any, **settings: Any) -> Any:
    """``function(*arguments, **settings)``; UserError, naming ``name``, where that fails. A full memory is not its
    mistake.
    """
    try:
        return function(*arguments, **settings)
    except (UserError, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:  # sys.exit, too, which is not for it to call
        if type(error).__name__ == "OutOfMemoryError":  # torch's, which is not imported here
            raise
        raise UserError(f"{name} failed{_place(error)}: {type(error).__name__}: {first_line(error)}") from error


def _place(error: BaseException) -> str:
    """The line of the user's file that an error came from, in brackets; nothing where it came from none."""
    places = [
        f" ({frame.f_code.co_filename}:{line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).startswith(_OWN)
    ]
    return places[-1] if places else ""


def _find(module: str, folders: list[Path]) -> tuple[Path, bool]:
    """The module's file, which may be a link, and whether it is one of a folder, not an installed one."""
    for folder in folders:
        path = folder.resolve() / f"{module}.py"
        if path.is_file():
            return path, True
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        places = "".join(f"{folder / module}.py is not there, and " for folder in folders)
        raise UserError(f'There is no module "{module}": {places}no such package of Python source is installed.')
    return Path(spec.origin), False


class _ThisSource(SourceLoader):
    """Runs these very bytes: byte code that Python keeps beside a file is told from another's by size and second."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        self.content = content

    def get_filename(self, fullname: str) -> str:
        return str(self.path)

    def get_data(self, path: object) -> bytes:
        return self.content


def _imported(module: str, path: Path, content: bytes, digest: str) -> ModuleType:
    """A module of the folder, run once a process, under a name that no installed one, nor another content of the same
    file, can have.
    """
    name = f"{_OWN}{module}_{digest}"
    if name not in sys.modules:
        loader = _ThisSource(path, content)
        spec = importlib.util.spec_from_loader(name, loader)
        assert spec is not None, "a loader that knows its file has a specification"
        made = importlib.util.module_from_spec(spec)
        sys.modules[name] = made
        try:
            loader.exec_module(made)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
