"""What the parts of a result have in common."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A part of a result: strict, frozen, no unknown key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, val_json_bytes="base64")
