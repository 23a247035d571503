"""Fonts that can draw the names, among those installed; what to do where none can."""

import unicodedata
from collections.abc import Iterable
from pathlib import Path

from matplotlib import font_manager

# It comes with matplotlib, so pictures look alike everywhere.
MAIN_FONT = "DejaVu Sans"

# What systems commonly have for Chinese; most also draw Japanese and Korean.
CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Heiti SC",
    "SimHei",
    "SimSun",
    "Noto Serif CJK SC",
    "Droid Sans Fallback",
    "AR PL UMing CN",
    "Arial Unicode MS",
)

_MOST_NAMED = 20  # names that gave way, in a complaint


class Lettering:
    """Knows which of the installed fonts draw the given texts, and notes where a text had to give way."""

    def __init__(self, texts: Iterable[str]) -> None:
        wanted = {letter for text in texts for letter in text if not letter.isspace()}
        self.lacking = wanted - _letters(MAIN_FONT)
        self.families = [MAIN_FONT]
        if self.lacking:
            _learn_new_fonts()
        for name in CJK_FONTS:
            if self.lacking and (drawn := self.lacking & _letters(name)):
                self.families.append(name)
                self.lacking -= drawn
        self._replaced: dict[str, str] = {}  # what stands in, and for what

    def text(self, text: str, otherwise: str) -> str:
        """The text on one line, without invisible marks, which may turn what is drawn after them, and without symbols
        that no font at hand can draw; ``otherwise`` where letters are among these.
        """
        text = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
        lacking = self.lacking & set(text)
        drawn = " ".join("".join(letter for letter in text if letter not in lacking).split())
        if drawn and not any(letter.isalnum() for letter in lacking):
            return drawn
        if lacking:
            self._replaced[otherwise] = text
            return otherwise
        return drawn

    @property
    def complaint(self) -> str | None:
        """What to install so that the texts that gave way can be drawn; None where none did."""
        if not self._replaced:
            return None
        letter = min(self.lacking & set("".join(self._replaced.values())))
        names = [f"{name} is {text}" for name, text in sorted(self._replaced.items())]
        which = ", ".join([*names[:_MOST_NAMED], *(["..."] if len(names) > _MOST_NAMED else [])])
        return (
            f'No installed font can draw "{letter}": numbers or short names stand in for names that have it ({which}); '
            "install one that can, for Chinese on Debian and Ubuntu: apt install fonts-noto-cjk."
        )


def _letters(family: str) -> set[str]:
    """All letters that a font family has; none if it is not installed."""
    if family not in font_manager.get_font_names():
        return set()
    path = font_manager.findfont(font_manager.FontProperties(family=family))
    return {chr(code) for code in font_manager.get_font(path).get_charmap()}


def _learn_new_fonts() -> None:
    """Make fonts known that were installed after matplotlib wrote its list of them."""
    known = {Path(entry.fname) for entry in font_manager.fontManager.ttflist}
    for path in sorted(font_manager.findSystemFonts()):
        if Path(path) not in known:
            try:
                font_manager.fontManager.addfont(path)
            except (OSError, RuntimeError):
                continue  # a font file that cannot be read draws nothing
