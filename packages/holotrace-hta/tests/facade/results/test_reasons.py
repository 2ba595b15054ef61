"""Empty frames say why they are empty."""

from __future__ import annotations

import pandas as pd

from hta.facade.results.reasons import explained


def test_only_a_frame_without_rows_has_a_reason() -> None:
    """`explained` stores the reason in the `attrs` of an empty frame and leaves other frames unchanged."""
    filled, empty = pd.DataFrame({"rank": [0]}), pd.DataFrame({"rank": []})
    assert explained(filled, "why") is filled
    assert not filled.attrs
    assert explained(empty, "why").attrs == {"reason": "why"}
