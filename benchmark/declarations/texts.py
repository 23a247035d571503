"""Texts and paths as entries hold them."""

import re
from pathlib import PurePath
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from benchmark.specs import written_as

Text = Annotated[str, Field(min_length=1)]


def _stays_below(path: str) -> str:
    parts = path.replace("\\", "/").split("/")
    if not path or parts[0] in ("", "~") or ".." in parts or re.match(r"[A-Za-z]:$", parts[0]):
        raise PydanticCustomError("below", "a path must be relative and may not leave its folder")
    return path


# A path, or a glob pattern, below a folder.
Below = Annotated[str, AfterValidator(_stays_below)]


def _below_or_whole(path: str) -> str:
    return path if PurePath(path).is_absolute() else _stays_below(path)


# A folder below another one, or the whole path of one.
Folder = Annotated[str, AfterValidator(_below_or_whole)]


# An id of the hub: a name, or an owner and a name.
HubId = Annotated[str, written_as(r"\w[\w.-]*(/\w[\w.-]*)?", 'a name of the hub, or "owner/name",')]
