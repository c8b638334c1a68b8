"""Links from a page to a file of the repository that is not part of the site: on GitHub a link, here its text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class OutsideLinks(SphinxPostTransform):
    """Keep the words of a link to a file of the repository; a target that is nowhere stays a warning, so an error."""

    default_priority = 8
    """Before MyST resolves its own links, at 9."""

    def run(self, **options: Any) -> None:
        """Replace such links by what they hold."""
        for node in list(self.document.findall(pending_xref)):
            target = str(node.get("reftarget", "")).partition("#")[0]
            if node.get("reftype") != "myst" or not target:
                continue
            found = (Path(self.env.doc2path(node["refdoc"])).parent / target).resolve()
            if found.exists() and not found.is_relative_to(self.app.srcdir):
                node.replace_self(node.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at each page before its links are resolved."""
    app.add_post_transform(OutsideLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
