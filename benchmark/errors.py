"""The exception that stands for a user's mistake, and the words that such sentences are made of."""

from collections.abc import Collection


class UserError(Exception):
    """Something that the user can put right, told in one sentence.

    The sentence says what is wrong, where (file and line, or key) and what to do. Command lines print it without a
    traceback and exit with code 2; every other exception is a fault of the program and keeps its traceback.
    """


_LONGEST = 500  # letters of what an error says: one may hold a whole tensor


def first_line(error: BaseException) -> str:
    """The first line of what an error says, without its full stop, its end left out where it is long, and what is no
    whole letter in it (of a file's name, say) written out; the error's type where it says nothing.
    """
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    said = lines[0].encode("utf-8", "backslashreplace").decode("utf-8")
    return said.rstrip(".") if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"


def nearest(name: str, known: Collection[str]) -> str:
    """The end of a sentence that leads from a wrong name to a right one, e.g. ``did you mean "rau"?``.

    Where nothing is near, it lists what exists.
    """
    from difflib import get_close_matches

    # as a table or a paper writes it: "HS-RAU" for hs_rau
    close = [one for one in known if _plain(one) == _plain(name)] or get_close_matches(name, known, n=1, cutoff=0.65)
    if close:
        return f'did you mean "{close[0]}"?'
    return f"known: {', '.join(sorted(known)) or 'none'}."


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
