"""Critical path: the question, the terms in its tables, and the options that choose a window."""

from __future__ import annotations

import re

from holotrace.errors import InvalidOptionError
from holotrace.questions.options import Option
from holotrace.questions.question import Analysis

_INSTANCE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_TIMES = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)-(\d{1,12}(?:\.\d{1,6})?)")
_NS_OF_A_MILLISECOND = 1_000_000


def parse_instance(text: str) -> int | tuple[int, int]:
    """Parse the number of a step or annotation, such as `3`, or a range of numbers, such as `3-5`."""
    match = _INSTANCE.fullmatch(text)
    if match is None:
        message = f"{text!r} is not an instance; write a number such as 3, or a range such as 3-5"
        raise InvalidOptionError(message)
    first, last = match.groups()
    return int(first) if last is None else (int(first), int(last))


def parse_times(text: str) -> tuple[int, int]:
    """Parse a time range in milliseconds, such as `10-20.5`, and return it in nanoseconds."""
    match = _TIMES.fullmatch(text)
    if match is None:
        message = f"{text!r} is not a time range; write a range in milliseconds, such as 10-20.5"
        raise InvalidOptionError(message)
    start, end = (round(float(part) * _NS_OF_A_MILLISECOND) for part in match.groups())
    return start, end


QUESTION = Analysis(
    __package__,
    title="Critical path",
    question="What bounds the step?",
    section="Host",
    definitions=(
        ("critical path", "the chain of activities and delays that spans the whole window without a gap"),
        ("window", "a step, by default the second to last one; without steps, the whole recording"),
        ("CPU operators", "self time of operators and calls on the host"),
        ("host gaps", "time of a thread outside all recorded events: mostly Python"),
        ("loading", "time inside host ranges whose names show that they load data"),
        (
            "launches",
            "launch delay: from the end of a launch to the start of the launched work, if nothing else delays this work",
        ),
        ("unknown", "time before the first recorded work of a stream, or before work whose launch was not recorded"),
        (
            "between kernels",
            "kernel-kernel delay: from the end of work on a stream to the start of the next work, if that work was already launched",
        ),
        ("computation, comm., copies", "device work by kind; communication includes collectives on the host"),
        ("sync", "synchronisation wait: from the end of the awaited work until the waiting thread or stream continues"),
    ),
    options=(
        Option(
            "annotation",
            "Instead of a step, analyse host annotations whose names contain this text; an empty text selects "
            "the whole recording.",
            metavar="NAME",
        ),
        Option(
            "instance",
            "Analyse the step with this number; with --annotation, the instance of the annotation, counted from 0. "
            "A range such as 3-5 is analysed as one window.",
            metavar="3-5",
            read=parse_instance,
        ),
        Option(
            "time_range_ns",
            "Instead of a step, analyse a time range, in ms after the job's first event.",
            flag="--time-range-ms",
            metavar="10-20.5",
            read=parse_times,
        ),
        Option(
            "data_loading",
            "Treat host ranges with a matching name as data loading; may be repeated.",
            kind=list[str],
            metavar="REGEX",
        ),
    ),
)
