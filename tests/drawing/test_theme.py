"""The colours of figures are readable on light and dark pages."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from holotrace.drawing import colors, theme
from holotrace.drawing.colors import PATH_COLORS, contrast, ink_on
from holotrace.enrich.critical_path.event_graph import PathClass
from holotrace.questions.result_columns import PATH_CLASSES

FILLS = {
    name: value
    for name, value in vars(colors).items()
    if isinstance(value, str) and value.startswith("#") and name not in {"DARK_INK", "LIGHT_INK", "DEVICE_TO_DEVICE"}
}
"""Colours that have a meaning, by name."""

TOGETHER = [
    "COMPUTATION NON_COMPUTATION IDLE",
    "COMPUTATION COMMUNICATION MEMORY OTHER",
    "COMPUTATION HIDDEN_COMMUNICATION COMMUNICATION IDLE",
    "COMPUTATION MEMORY MEMSET COMMUNICATION CALL DATA_LOADING OPERATOR UNKNOWN",
    "OPERATOR HOST_GAP DATA_LOADING LAUNCH_DELAY KERNEL_GAP COMPUTATION COMMUNICATION MEMORY SYNCHRONISATION UNKNOWN",
    "COMPUTATION OTHER MEMORY ROOF",
    "COMMUNICATION RANK_WAIT UNKNOWN",
    "HOST_WAIT LAUNCH_DELAY UNKNOWN",
    "TENSOR_CORES UNKNOWN COMPUTATION INSIDE",
    "OPERATOR INSIDE",
    "ANNOTATION INSIDE",
    "CONTROL TEST",
    "ADVICE ADVICE_BOUND ADVICE_ESTIMATE",
    "FORWARD BACKWARD",
    "FREED KEPT",
    "QUEUE_EMPTY QUEUED QUEUE_FULL",
    "LATE MAYBE_LATE ON_TIME",
    "COMPUTATION MEMORY OTHER MEMSET COMMUNICATION LAUNCH_DELAY UNKNOWN HOST_GAP",
    "HOST_TO_DEVICE DEVICE_TO_HOST DEVICE_TO_DEVICE PEER_TO_PEER MEMSET UNKNOWN_COPY",
]
"""Colours that may be next to each other in a figure."""

# Machado, Oliveira and Fernandes 2009, severity 1.0: linear RGB as seen by readers without red or green cones.
# https://www.inf.ufrgs.br/~oliveira/pubs_files/CVD_Simulation/CVD_Simulation.html
BLIND = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def linear(color: str) -> tuple[float, ...]:
    """Return the linear RGB values of a colour like `#rrggbb`."""
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    return tuple(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)


def seen(color: str, kind: str) -> tuple[float, ...]:
    """Return a colour's linear RGB values as seen by an eye that lacks one kind of cone."""
    return tuple(sum(a * b for a, b in zip(row, linear(color), strict=True)) for row in BLIND[kind])


def test_every_meaning_has_its_own_colour() -> None:
    """No two meanings share a fill colour, and no series has the fill colour of a meaning."""
    assert len(set(FILLS.values())) == len(FILLS)
    assert not set(colors.SERIES) & set(FILLS.values())


def test_figures_take_their_colours_from_the_table() -> None:
    """Figures of analyses and elements of the timeline page take all colours from one table."""
    package = Path(colors.__file__).parent.parent
    figures = [*package.glob("analyses/*/figure.py"), *package.glob("drawing/*_bars.py")]
    assert len(figures) > 20
    assert [file for file in figures if re.search("[\"']#[0-9a-f]{6}[\"']", file.read_text(encoding="utf-8"))] == []
    timeline = (package / "web" / "assets" / "palette.js").read_text(encoding="utf-8")
    assert all(f'"{color}"' in timeline for color in (*PATH_COLORS.values(), *colors.FINDING_COLORS.values()))


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS.keys())
def test_every_fill_stands_out_from_both_backgrounds(fill: str, name: theme.Theme) -> None:
    """Each fill has a contrast of at least 1.5 to the background of light and of dark pages."""
    assert contrast(fill, theme.SURFACES[name].background) >= 1.5


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS.keys())
def test_text_on_a_fill_is_readable(fill: str) -> None:
    """Labels in bars have a contrast of at least 3, which WCAG requires for large text."""
    assert contrast(ink_on(fill), fill) >= 3


@pytest.mark.parametrize("kind", BLIND)
@pytest.mark.parametrize("names", TOGETHER)
def test_colors_used_together_differ_for_colour_blind_readers(names: str, kind: str) -> None:
    """Readers without red or without green cones can distinguish any two colours of a figure."""
    for first, second in itertools.combinations([getattr(colors, name) for name in names.split()], 2):
        distance = sum((a - b) ** 2 for a, b in zip(seen(first, kind), seen(second, kind), strict=True)) ** 0.5
        assert distance >= 0.1, (first, second)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_of_a_theme_is_readable(name: theme.Theme) -> None:
    """Text, links and warnings have a contrast of at least 4.5 on figures and on the page around them."""
    surface = theme.SURFACES[name]
    words = (surface.text, surface.muted, surface.accent, surface.bad)
    assert min(contrast(ink, behind) for ink in words for behind in (surface.background, surface.page)) >= 4.5


def test_an_empty_figure_says_why() -> None:
    """A figure without data shows its title and the reason instead of axes."""
    figure = theme.empty_figure("What?", "Nothing ran.", "dark")
    assert (figure.layout.title.text, figure.layout.annotations[0].text) == ("What?", "Nothing ran.")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_no_figure_offers_to_upload_itself(name: theme.Theme) -> None:
    """The figure template removes the upload button that plotly.js 7 adds."""
    assert theme.template(name).layout.modebar.remove == ("sendChartToCloud",)


def test_every_class_of_the_critical_path_has_a_colour() -> None:
    """PATH_COLORS lists every class of the critical path in order, under the names used in results."""
    assert list(PATH_COLORS) == [path_class.name.lower() for path_class in PathClass] == list(PATH_CLASSES)
