"""Merge equal findings of many ranks into one sentence that names the ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_MOST_RANGES = 8


def joined_findings(of_ranks: Mapping[int, Iterable[str]]) -> tuple[str, ...]:
    """Return each distinct sentence once, preceded by the ranks that it is about: `rank 3: …`, `ranks 0-5, 7: …`."""
    ranks: dict[str, list[int]] = {}
    for rank, sentences in of_ranks.items():
        for sentence in sentences:
            ranks.setdefault(sentence, []).append(rank)
    return tuple(f"{ranks_text(sorted(about))}: {sentence}" for sentence, about in ranks.items())


def ranks_text(ranks: list[int]) -> str:
    """Write ranks as ranges, such as `ranks 0-3, 7`; if there are many ranges, write only the first few."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][-1] + 1:
            spans[-1][1:] = [rank]
        else:
            spans.append([rank])
    listed = ", ".join("-".join(map(str, span)) for span in spans[:_MOST_RANGES])
    listed += ", …" if len(spans) > _MOST_RANGES else ""
    return f"rank {listed}" if len(ranks) == 1 else f"ranks {listed}"
