"""The colours of figures, pages and the timeline: each meaning has the same colour everywhere.

The colours of a figure are distinguishable with the common forms of colour blindness, on light and dark backgrounds. A
state in which several kinds of work run at once is hatched in their colours.
"""

from __future__ import annotations

# Work and idle time of devices.
COMPUTATION = "#2f7fc1"
COMMUNICATION = "#d96b24"
MEMORY = "#27967b"
MEMSET = "#8ccfbf"
OTHER = "#b07aa8"
IDLE = "#a9b3be"
NON_COMPUTATION = "#8a7a2e"
HIDDEN_COMMUNICATION = "#f0b98d"
TENSOR_CORES = "#4b3f9e"

# Work of the host.
OPERATOR = "#5d7eac"
ANNOTATION = "#8868b6"
CALL = "#3f808d"
PYTHON = "#66874f"
DATA_LOADING = "#7a4a2b"

# Causes of waiting.
HOST_WAIT = "#cc5f74"
LAUNCH_DELAY = "#d9c15f"
HOST_GAP = "#c7b3e5"
KERNEL_GAP = "#e6c9a8"
SYNCHRONISATION = "#9fb1c9"
RANK_WAIT = "#c44f67"
QUEUE_EMPTY = "#c3cbd4"
QUEUED = "#6fa0a0"
QUEUE_FULL = "#8c2f4b"

# Ranks.
LATE = "#b3261e"
MAYBE_LATE = "#e3a857"
ON_TIME = "#9fb0c0"

# Parts of a total, such as freed and kept memory, and the two traces of a comparison.
INSIDE = "#b9cbe0"
FORWARD = "#5b9bd8"
BACKWARD = "#9c3a86"
CONTROL = "#8c97a5"
TEST = "#5a4fc0"
FREED = "#9db8d2"
KEPT = "#a4493d"

# The cost of a finding, by its source: the prediction of a replay, an upper bound, or an estimate.
ADVICE = "#8a4fd0"
ADVICE_BOUND = "#d5b9f0"
ADVICE_ESTIMATE = "#9a8ba8"

# Directions of copies; copies within a device have the same colour as memory.
HOST_TO_DEVICE = "#1f5f4f"
DEVICE_TO_HOST = "#5ab892"
DEVICE_TO_DEVICE = MEMORY
PEER_TO_PEER = "#146a86"
UNKNOWN_COPY = "#c4ca98"

# Colours of lines without a fixed meaning, such as the metrics or devices of a figure.
SERIES = ("#3d5a9e", "#b5651d", "#2f855a", "#a23b72", "#7b6d1d")
ROOF = "#b8860b"

UNKNOWN = "#cdd1d6"
UNRECORDED = "#5f6f7a"

# Trust in a recording.
TRUSTED = "#7fb59a"
DOUBTFUL = "#b4567a"

KIND_COLORS = {"computation": COMPUTATION, "communication": COMMUNICATION, "memory": MEMORY, "other": OTHER}
"""Colour of each kernel kind, by its name in results."""

PATH_COLORS = {
    "cpu_operator": OPERATOR,
    "host_gap": HOST_GAP,
    "data_loading": DATA_LOADING,
    "launch_delay": LAUNCH_DELAY,
    "kernel_kernel_delay": KERNEL_GAP,
    "computation": COMPUTATION,
    "communication": COMMUNICATION,
    "copy": MEMORY,
    "synchronisation_wait": SYNCHRONISATION,
    "unknown": UNKNOWN,
}
"""Colour of each class of the critical path, by its name in results."""

EVENT_COLORS = KIND_COLORS | {
    "operator": OPERATOR,
    "annotation": ANNOTATION,
    "call": CALL,
    "python": PYTHON,
    "wait": RANK_WAIT,
}
"""Colour of each class of events on the timeline page; events of one class but different names differ in shade."""

AXIS_COLORS = {
    "pp": "#b0563b",
    "tp": "#3d6fd1",
    "cp": "#4a9c5d",
    "ep": "#7d5bd0",
    "fsdp": "#c28a1c",
    "dp": "#e08a3c",
    "world": "#6b7fa3",
    "unknown": UNKNOWN,
}
"""Colour of each axis of parallelism, by its name in results."""

FINDING_COLORS = {"idle": IDLE, "waiting": RANK_WAIT, "advice": ADVICE}
"""Colour of each kind of finding on the timeline page."""

SLOW_TO_FAST = [[0.0, "#f3e3b3"], [0.5, "#5aa9a3"], [1.0, "#1d4e79"]]
LITTLE_TO_MUCH = [[0.0, "#f3e3b3"], [0.5, "#e7a977"], [1.0, "#7a1f2b"]]
"""Colour scales of matrices: `SLOW_TO_FAST` for bandwidths, `LITTLE_TO_MUCH` for lost time."""

DARK_INK, LIGHT_INK = "#1f2933", "#ffffff"


def ink_on(color: str) -> str:
    """Return the text colour, dark or light, that is more readable on this fill."""
    return max(DARK_INK, LIGHT_INK, key=lambda ink: contrast(ink, color))


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    channels = (int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]  # noqa: PLR2004 -- constants from the definition
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
