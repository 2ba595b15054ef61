"""User annotations: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.user_annotations.compute import UserAnnotations
from holotrace.units import duration_text


def answer(result: UserAnnotations) -> str:
    """Name the annotation that takes the most time."""
    longest = result.per_annotation.sort("total_ns", descending=True).row(0, named=True)
    side = {"cpu": "host", "gpu": "device"}[longest["side"]]
    return (
        f"{duration_text(longest['total_ns'])} on the {side} of rank {longest['rank']} goes into {longest['name']}, the costliest "
        f"annotation, in {longest['call_count']:,} call{'s' if longest['call_count'] > 1 else ''}."
    )
