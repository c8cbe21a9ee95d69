"""What the pages load is pinned and verified; what cannot be verified is left out."""

import json
import shutil
import zipfile

import pytest
import site_assets


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(site_assets, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(site_assets, "SITE", tmp_path / "cache" / "site")
    return tmp_path


@pytest.fixture
def packages(fresh_cache, monkeypatch):
    """Return a folder with the verified packages, named as the source of the next build."""
    folder = fresh_cache / "given"
    shutil.copytree(site_assets.ROOT / ".cache" / "pyodide", folder)
    monkeypatch.setenv("GRPO_PYODIDE", str(folder))
    return folder


@pytest.fixture(autouse=True, scope="module")
def assets():
    """Make the assets once, so that the tests below need no network."""
    return site_assets.prepare()


def test_manifest_lists_files_with_their_sizes(assets):
    manifest = json.loads((assets / "live" / "manifest.json").read_text())
    for file in manifest["files"]:
        assert (assets / file["path"]).stat().st_size == file["bytes"]
    assert sum(file["bytes"] for file in manifest["files"]) < 30e6
    assert (
        sum(file["path"].endswith(".whl") for file in manifest["files"]) == 13 + 3
    )  # the book, tabulate, tqdm


def test_a_second_call_makes_nothing(assets, monkeypatch):
    monkeypatch.setattr(site_assets, "run", lambda *_, **__: pytest.fail("ran a command"))
    assert site_assets.prepare() == assets


def test_the_wheel_of_the_book_holds_the_data_that_chapters_read(assets):
    (wheel,) = (assets / "wheels").glob("grpo_worked_numerical_example-*.whl")
    data = sorted((site_assets.ROOT / "src" / "grpo" / "data").iterdir())
    assert data
    with zipfile.ZipFile(wheel) as archive:
        for path in data:
            assert archive.read(f"grpo/data/{path.name}") == path.read_bytes()


def test_a_changed_data_file_makes_the_assets_anew(tmp_path, monkeypatch):
    for name in ("src", "requirements.txt", "pyproject.toml"):
        source, target = site_assets.ROOT / name, tmp_path / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    monkeypatch.setattr(site_assets, "ROOT", tmp_path)
    before = site_assets.fingerprint()
    path = tmp_path / "src" / "grpo" / "data" / "stacks.json"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert site_assets.fingerprint() != before


def test_packages_may_come_from_a_folder(packages):
    assert len(site_assets.pyodide_packages()) == 13


def test_an_altered_package_is_refused_and_left_out(packages, capsys):
    wheel = next(packages.glob("numpy-*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"x")
    with pytest.raises(ValueError, match=r"numpy.* is not the file"):
        site_assets.pyodide_packages()
    assert not site_assets.python_for_the_browser(book=None)
    assert "left out" in capsys.readouterr().err
    assert not (site_assets.SITE / "pyodide").exists()
    assert not (site_assets.SITE / "live" / "manifest.json").exists()


def test_front_end_packages_are_locked_by_hash_without_addresses():
    lock = json.loads((site_assets.WEB / "package-lock.json").read_text())
    packages = [entry for name, entry in lock["packages"].items() if name]
    assert packages and all(entry["integrity"].startswith("sha512-") for entry in packages)
    assert not any("resolved" in entry for entry in packages)
