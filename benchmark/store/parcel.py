"""The files of one run on their way from one folder to another."""

import hashlib
from dataclasses import dataclass

from pydantic import ValidationError

from benchmark.specs import RunSpec
from benchmark.store.logits import logits_name
from benchmark.store.result import Result


class Damaged(Exception):
    """A parcel does not hold what it should, and why."""


@dataclass(frozen=True)
class Parcel:
    """The files of one run as bytes, on their way from one folder to another; None for one that there is not."""

    result: bytes | None
    logits: bytes | None
    log: bytes | None

    def opened(self, run: RunSpec) -> Result | None:
        """The result, of just that run and with just the logits that it names; None where the parcel holds none.

        Raises ``Damaged`` for anything else.
        """
        if self.result is None:
            return None
        try:
            result = Result.model_validate_json(self.result)
        except ValidationError as error:
            raise Damaged(f"it is no result ({error.errors()[0]['msg']})") from None
        if result.run != run:
            raise Damaged("it is the result of another run")
        if (result.logits is None) != (self.logits is None):
            raise Damaged("result and logits do not belong together")
        if result.logits is not None and self.logits is not None:
            digest = hashlib.sha256(self.logits).hexdigest()
            if result.logits.sha256 != digest or result.logits.file != logits_name(run, digest):
                raise Damaged("its logits are not the bytes that were computed")
        return result
