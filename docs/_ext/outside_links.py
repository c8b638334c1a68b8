"""Links that GitHub follows and MyST does not: to a file outside the site (here its text), and to an anchor in HTML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class OutsideLinks(SphinxPostTransform):
    """Resolve both kinds; a target that is nowhere stays a warning, which is an error."""

    default_priority = 8
    """Before MyST resolves its own links, at 9."""

    def run(self, **options: Any) -> None:
        """Replace such links."""
        html = "".join(raw.astext() for raw in self.document.findall(nodes.raw))
        anchors = set(re.findall(r'<a id="([^"]+)"', html))
        for node in list(self.document.findall(pending_xref)):
            if node.get("reftype") != "myst":
                continue
            if node["reftarget"] in anchors:
                link = nodes.reference("", "", *node.children, refuri=f"#{node['reftarget']}", internal=True)
                node.replace_self(link)
                continue
            target = str(node["reftarget"]).partition("#")[0]
            if not target:
                continue
            found = (Path(self.env.doc2path(node["refdoc"])).parent / target).resolve()
            if found.exists() and not found.is_relative_to(self.app.srcdir):
                node.replace_self(node.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at each page before its links are resolved."""
    app.add_post_transform(OutsideLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
