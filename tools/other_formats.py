"""Sphinx extension: EPUB and the single page, named, versioned, with formulas in MathML.

A reader of EPUB runs no MathJax, and one page with every formula of the book would wait for it.
"""

import json
import subprocess
import uuid

import site_assets
from docutils import nodes
from myst_nb.sphinx_ext import add_global_html_resources
from sphinx.builders.epub3 import Epub3Builder
from sphinx.util.math import wrap_displaymath

from grpo import __version__

NAME = f"grpo-worked-numerical-example-{__version__}"


def setup(app):
    app.add_config_value("epub_math_renderer", "mathml", "env", str)
    app.add_config_value("singlehtml_math_renderer", "mathml", "env", str)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.add_builder(Epub, override=True)
    app.connect("config-inited", name_and_version)
    app.connect("builder-inited", leave_out_the_search)
    app.connect("env-updated", convert_formulas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Epub(Epub3Builder):
    """The EPUB of Sphinx, complete and with formulas declared."""

    def build_content(self):
        """Write the list of files, and say which hold MathML, as EPUB 3 demands."""
        add_global_html_resources(self.app, None)  # myst-nb's style, before all is packed
        super().build_content()
        package = self.outdir / "content.opf"
        text = package.read_text(encoding="utf-8")
        for page in self.outdir.rglob("*.xhtml"):
            if "<math" in page.read_text(encoding="utf-8"):
                href = f'href="{page.relative_to(self.outdir).as_posix()}"'
                text = text.replace(href, f'{href} properties="mathml"', 1)
        package.write_text(text, encoding="utf-8")


def name_and_version(app, config):
    config.version = config.release = __version__
    config.epub_basename = NAME
    config.epub_contributor = config.epub_publisher = config.author
    config.epub_scheme, config.epub_identifier = "UUID", uuid.uuid5(uuid.NAMESPACE_URL, NAME).urn


def leave_out_the_search(app):
    if app.builder.name == "singlehtml":
        app.config.html_sidebars = {"**": ["navbar-logo"]}


def convert_formulas(app, env):
    """Convert the formulas of all pages in one process of Node."""
    if app.builder.math_renderer_name != "mathml":
        return
    formulas = []
    for page in env.found_docs:
        tree = env.get_doctree(page)
        formulas += [as_tex(node) for node in tree.findall(nodes.math)]
        formulas += [as_tex(node) for node in tree.findall(nodes.math_block)]
    process = subprocess.run(
        [site_assets.node_program("node"), site_assets.WEB / "mathml.mjs"],
        input=json.dumps([{"tex": tex, "display": display} for tex, display in formulas]),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    app.mathml = dict(zip(formulas, json.loads(process.stdout), strict=True))


def as_tex(node):
    """Return the TeX of a formula and whether it stands on a line of its own."""
    display = isinstance(node, nodes.math_block)
    tex = node.astext()
    return (wrap_displaymath(tex, None, numbering=False) if display else tex), display


def visit_math(translator, node):
    translator.body.append(translator.builder.app.mathml[as_tex(node)])
    raise nodes.SkipNode
