"""Repetitions in what a check of an experiment sends and expects."""

import re


def spelled_out(text: str) -> str:
    """Return a text with each {a*4000} replaced by 4000 times that character."""
    return re.sub(r"\{(.)\*(\d+)\}", lambda match: match[1] * int(match[2]), text)
