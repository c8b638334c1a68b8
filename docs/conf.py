"""How Sphinx builds the site: `make docs`. Warnings are errors, and nothing is fetched from a network."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# A tutorial calls `payback`, which is beside this interpreter, whether or not its environment is activated.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))

project = "payback"
author = "The payback maintainers"
copyright = author
version = release = version_of("payback")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "docstrings", "outside_links", "public_names"]
extensions += ["mathml", "narrow", "run_help", "shown_code", "vega_bundle"]
exclude_patterns = ["_build", "_ext", "**/.ipynb_checkpoints"]
default_role = "literal"
highlight_language = "none"  # an indented block is an equation or plain text

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block", "attrs_inline"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# The tutorials take minutes: `make docs` runs them, `make docs NOTEBOOKS=off` builds the site without.
nb_execution_mode = os.environ.get("NOTEBOOKS", "off")
nb_execution_cache_path = str(HERE.parent / "build" / "notebooks")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
# These have an environment of their own: their adapters are documented without them.
autodoc_mock_imports = ["ray", "rllte", "rsl_rl", "skrl"]

html_theme = "furo"
pygments_dark_style = "github-dark"  # furo's default underlines imports, as if they were links
html_math_renderer = "mathml"
html_title = "payback"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
# Summaries are fetched, which a browser refuses for files.
html_show_search_summary = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
