"""Texts and paths as entries hold them."""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

Text = Annotated[str, Field(min_length=1)]


def _stays_below(path: str) -> str:
    if not path or path.startswith(("/", "~")) or ".." in path.replace("\\", "/").split("/") or ":" in path:
        raise PydanticCustomError("below", "a path must be relative and may not leave its folder")
    return path


# A path, or a glob pattern, below a folder.
Below = Annotated[str, AfterValidator(_stays_below)]


# An id of the hub: a name, or an owner and a name.
HubId = Annotated[str, Field(pattern=r"^\w[\w.-]*(/\w[\w.-]*)?$")]
