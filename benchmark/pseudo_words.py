"""The words of generated corpora, which their tiny encoders know."""

_CONSONANTS = "bdfgklmnprstvz"
_VOWELS = "aeiou"


def pseudo_words(size: int) -> list[str]:
    """``size`` different pseudo-words of two or more syllables, the same for everyone."""
    syllables = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]
    words = []
    for number in range(size):
        word, rest = "", number
        while len(word) < 4 or rest:
            rest, digit = divmod(rest, len(syllables))
            word += syllables[digit]
        words.append(word)
    return words
