"""Show `picture.dark.webp` in place of `picture.webp` in dark mode.

Pages link only to the light version of a picture, as in `![Idle time](images/questions/idle_time.webp)`, so they also
work on GitHub.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.transforms import SphinxTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class DarkPictures(SphinxTransform):
    """Insert the dark picture, if there is one, after each light picture."""

    default_priority = 400  # before Sphinx collects the pictures that it copies to the site

    def apply(self) -> None:
        """Give each light and dark picture a class, so that the theme shows only one of the two."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for light in list(self.document.findall(nodes.image)):
            path = PurePosixPath(light["uri"])
            dark_path = path.with_suffix(f".dark{path.suffix}")
            if (folder / dark_path).is_file():
                dark = light.copy()
                dark["uri"] = str(dark_path)
                light["classes"].append("only-light")
                dark["classes"].append("only-dark")
                light.parent.insert(light.parent.index(light) + 1, dark)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(DarkPictures)
    return {"parallel_read_safe": True}
