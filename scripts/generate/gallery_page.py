"""Generates `docs/gallery.md`, which shows all pictures."""

from __future__ import annotations

from holotrace.catalogue import ANALYSES, COMPARISONS

_BEGINNING = """\
# Gallery

Every page and every figure, drawn from real recordings: DLRM on 8 GPUs, two ranks of a job on 128 GPUs, four ranks on the CPU (one of them
is slow on purpose), and a few shorter recordings. Click a figure to read how its numbers are defined. The recordings are in the repository;
`make pictures` draws all pictures again.

## Pages
"""

_PAGES = (
    ("overview", "Overview", "The verdict, how the time is spent, and what to try first.", "how-to/serve.md#pages"),
    ("timeline", "Timeline", "Every thread and stream of every rank, with counters.", "how-to/serve.md#timeline"),
    (
        "distributed",
        "The page of a question",
        "Figure, tables, definitions, and the Python code that computes the same numbers.",
        "how-to/serve.md#pages",
    ),
    (
        "stragglers",
        "A straggler",
        "Four ranks on the CPU; rank 3 sleeps in every step.",
        "reference/analyses/stragglers.md",
    ),
    ("diff", "Two runs", "Two runs side by side, the largest change first.", "reference/analyses/compare_traces.md"),
    ("health", "Health", "What each file contains, and whether it is damaged.", "how-to/serve.md#pages"),
    ("tensorboard", "TensorBoard", "The same pages in a tab of TensorBoard.", "how-to/tensorboard.md"),
    ("report", "Report", "One HTML file to share, which works offline.", "how-to/read_a_report.md"),
)


def gallery_page() -> str:
    """Return the text of the page."""
    pages = [_entry(title, text, f"pages/{name}", target) for name, title, text, target in _PAGES]
    figures = [
        _entry(question.title, question.question, f"questions/{question.name}", question.page)
        for question in (*ANALYSES, *COMPARISONS)
    ]
    return "\n".join([_BEGINNING, *pages, "## Questions\n", *figures])


def _entry(title: str, text: str, picture: str, target: str) -> str:
    return f"### {title}\n\n{text}\n\n[![{title}](images/{picture}.webp)]({target})\n"
