"""Sphinx extension: the pages load nothing from outside the site."""

import site_assets


def setup(app):
    app.connect("builder-inited", use_own_files)
    app.connect("build-finished", draw_icons_with_the_font_alone)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def use_own_files(app):
    # Jupyter Book always loads sphinx_thebe, whose script on every page names a remote address.
    app.registry.css_files[:] = [file for file in app.registry.css_files if "thebe" not in file[0]]
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if one.handler.__module__ != "sphinx_thebe"]
    if app.builder.name == "html":
        app.config.html_static_path.append(str(site_assets.prepare()))
        app.config.mathjax_path = "mathjax/tex-mml-chtml.js"
        app.add_js_file("live/live.js", loading_method="defer")
        app.add_css_file("live/live.css")


def draw_icons_with_the_font_alone(app, exception):
    """Empty the theme's largest script, 1.5 MB, which draws again what its web font draws."""
    script = app.outdir / "_static" / "scripts" / "fontawesome.js"
    if not exception and script.exists():
        script.write_text("// The icons come from the web font.\n")
