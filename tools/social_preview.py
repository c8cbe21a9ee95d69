"""Sphinx extension: what a page shows where somebody shares its address.

The address of the published book is read from the environment variable BOOK_URL; without it the
tags name the page and the picture relative to the site.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from docutils import nodes

from grpo import book, degenerate_probability

PICTURE = "_static/preview.png"


def setup(app):
    app.setup_extension("sphinxext.opengraph")
    app.connect("config-inited", name_the_picture)
    app.connect("html-page-context", describe, priority=100)
    app.connect("build-finished", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def name_the_picture(app, config):
    config.ogp_site_url = os.environ.get("BOOK_URL", "")
    config.ogp_image = PICTURE
    config.ogp_image_alt = "Share of groups that teach nothing, over the success probability"


def describe(app, page, template, context, tree):
    """Use the page's own description instead of its first words."""
    for meta in tree.findall(nodes.meta) if tree else ():
        if meta.get("name") == "description":
            context["meta"] = (context["meta"] or {}) | {"og:description": meta["content"]}


def draw(app, exception):
    """Draw the book's best known curve under its title."""
    if exception or app.builder.name != "html":
        return
    p = np.linspace(0, 1, 201)
    with plt.rc_context(book.STYLE | {"font.size": 22, "lines.linewidth": 5}):
        figure, ax = plt.subplots(figsize=(12, 6.3), dpi=100)
        for G in (4, 8, 16):
            ax.plot(p, degenerate_probability(p, G), label=f"groups of {G}")
        ax.set(xlabel="success probability", ylabel="share that teaches nothing")
        ax.set_title(app.config.project, loc="left", fontsize=32, weight="bold", pad=24)
        ax.legend(loc="upper center")
        figure.get_layout_engine().set(w_pad=0.4, h_pad=0.3)
        figure.savefig(app.outdir / PICTURE)
        plt.close(figure)
