"""The colours of figures are readable on light and dark pages."""

from __future__ import annotations

import itertools

import pytest

from holotrace.drawing import theme
from holotrace.enrich.critical_path.event_graph import PathClass
from holotrace.questions.result_columns import PATH_CLASSES

FILLS = [
    theme.COMPUTATION,
    theme.COMMUNICATION,
    theme.MEMORY,
    theme.OTHER,
    theme.IDLE,
    theme.HOST_WAIT,
    theme.KERNEL_WAIT,
    theme.HOST_GAP,
    theme.DATA_LOADING,
    theme.KERNEL_GAP,
]
TOGETHER = [
    (theme.COMPUTATION, theme.COMMUNICATION, theme.IDLE),
    (theme.COMPUTATION, theme.COMMUNICATION, theme.MEMORY, theme.OTHER),
    (theme.HIDDEN, theme.COMMUNICATION),
    (theme.HOST_WAIT, theme.KERNEL_WAIT, theme.IDLE),
    (
        theme.COMPUTATION,
        theme.COMMUNICATION,
        theme.MEMORY,
        theme.OTHER,
        theme.IDLE,
        theme.KERNEL_WAIT,
        theme.HOST_GAP,
        theme.DATA_LOADING,
        theme.KERNEL_GAP,
    ),
]
# Machado, Oliveira and Fernandes 2009, severity 1.0: linear RGB as seen without red or without green cones.
# https://www.inf.ufrgs.br/~oliveira/pubs_files/CVD_Simulation/CVD_Simulation.html
BLIND = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def linear(color: str) -> tuple[float, ...]:
    """Return linear RGB of `#rrggbb`."""
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    return tuple(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)


def luminance(color: str) -> float:
    """Return the relative luminance of WCAG."""
    return sum(weight * channel for weight, channel in zip((0.2126, 0.7152, 0.0722), linear(color), strict=True))


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of WCAG, 1 to 21."""
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def seen(color: str, kind: str) -> tuple[float, ...]:
    """Return linear RGB as an eye without one kind of cones sees it."""
    return tuple(sum(a * b for a, b in zip(row, linear(color), strict=True)) for row in BLIND[kind])


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("fill", FILLS)
def test_every_fill_stands_out_from_both_backgrounds(fill: str, name: theme.Theme) -> None:
    """Each fill has a contrast of at least 1.5 on light and dark pages, which share the colours."""
    assert contrast(fill, theme.SURFACES[name].background) >= 1.5


@pytest.mark.parametrize("fill", FILLS)
def test_text_on_a_fill_is_readable(fill: str) -> None:
    """Labels in bars have a contrast of at least 3, which WCAG requires for large text."""
    assert contrast(theme.ink_on(fill), fill) >= 3


@pytest.mark.parametrize("kind", BLIND)
@pytest.mark.parametrize("colors", TOGETHER)
def test_colors_used_together_differ_for_colour_blind_readers(colors: tuple[str, ...], kind: str) -> None:
    """Readers without red or without green cones can tell apart any two colours of a figure."""
    for first, second in itertools.combinations(colors, 2):
        distance = sum((a - b) ** 2 for a, b in zip(seen(first, kind), seen(second, kind), strict=True)) ** 0.5
        assert distance >= 0.1, (first, second)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_of_a_theme_is_readable(name: theme.Theme) -> None:
    """Text and muted text have a contrast of at least 4.5 on their page's background."""
    surface = theme.SURFACES[name]
    assert min(contrast(surface.text, surface.background), contrast(surface.muted, surface.background)) >= 4.5


def test_an_empty_figure_says_why() -> None:
    """A figure without data shows its title and the reason in place of axes."""
    figure = theme.empty_figure("What?", "Nothing ran.", "dark")
    assert (figure.layout.title.text, figure.layout.annotations[0].text) == ("What?", "Nothing ran.")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_no_figure_offers_to_upload_itself(name: theme.Theme) -> None:
    """The figure template removes the upload button that plotly.js 7 adds."""
    assert theme.template(name).layout.modebar.remove == ("sendChartToCloud",)


def test_every_class_of_the_critical_path_has_a_colour() -> None:
    """PATH_COLORS lists every class of the critical path, in order and under the names that results use."""
    assert list(theme.PATH_COLORS) == [path_class.name.lower() for path_class in PathClass] == list(PATH_CLASSES)
