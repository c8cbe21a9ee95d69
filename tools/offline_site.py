"""Sphinx extension: the pages load nothing from outside the site."""

import site_assets


def setup(app):
    app.connect("config-inited", use_own_files)
    app.add_js_file("live/live.js", loading_method="defer")
    app.add_css_file("live/live.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def use_own_files(app, config):
    config.html_static_path.append(str(site_assets.prepare()))
    config.mathjax_path = "mathjax/tex-mml-chtml.js"
    # Jupyter Book always loads sphinx_thebe, whose script on every page names a remote address.
    app.registry.css_files[:] = [file for file in app.registry.css_files if "thebe" not in file[0]]
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if one.handler.__module__ != "sphinx_thebe"]
