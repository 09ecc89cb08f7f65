"""How `make docs` builds the manual: without a network, and with every warning an error."""

import io
import re

from docutils import nodes
from docutils.utils.math import latex2mathml
from rich.console import Console
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

import ucbf
from ucbf.cli.app import app as command

project = "ucbf"
author = "The ucbf contributors"
release = version = ucbf.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["figure2.md", "figure3.md"]  # the two tables are part of benchmarks.md

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what goes in, in words
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False

html_theme = "furo"
html_title = f"ucbf {release}"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "monokai"


def inline_math(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula of a sentence as MathML, which browsers show without any script."""
    translator.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def block_math(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own as MathML."""
    translator.body.append(latex2mathml.tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


class Help(SphinxDirective):
    """What `ucbf ... --help` prints, for ``{help} learn inventory``."""

    optional_arguments = 2

    def run(self) -> list[nodes.Node]:
        """The text as it stands on a terminal of 100 columns."""
        printed = io.StringIO()
        command.help_print(self.arguments, console=Console(file=printed, width=100))
        text = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
        return [nodes.literal_block(text, text, language="text")]


def end_examples(app: Sphinx, page: str, source: list[str]) -> None:
    """Leave out the empty line that ends what an example prints, where the block ends too."""
    source[0] = re.sub(r"(^```python\n.*?)\n\n```$", r"\1\n```", source[0], flags=re.DOTALL | re.MULTILINE)


def setup(app: Sphinx) -> None:
    """Tell Sphinx how formulas are written, and of the directive."""
    app.connect("source-read", end_examples)
    app.add_directive("help", Help)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
