"""Reads the plugins that also the notebooks need, which have no tests beside them."""

pytest_plugins = ["figures"]
