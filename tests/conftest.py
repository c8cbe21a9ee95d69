import build_book
import pytest
import site_assets


def pytest_configure(config):
    """Gather the assets of the site once, before workers need them at the same time."""
    if not hasattr(config, "workerinput"):
        site_assets.prepare()


@pytest.fixture(scope="session")
def html(tmp_path_factory):
    """Return the folder of the book, built from the stored outputs with warnings as errors."""
    folder = tmp_path_factory.mktemp("book")
    process = build_book.build(folder)
    assert process.returncode == 0, process.stdout
    assert "WARNING" not in process.stdout
    return folder / "_build" / "html"
