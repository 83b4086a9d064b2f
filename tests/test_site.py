"""The documentation site builds without a dead link, is complete, and asks for nothing from elsewhere."""

import logging
import re
import shutil
from pathlib import Path

import pytest

import flashbulb

pytest.importorskip("mkdocs")
from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).parent.parent


def built(root: Path, site: Path) -> list[str]:
    """Build the site of a repository, and return the warnings."""
    heard: list[str] = []

    class Listen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    listener = Listen(logging.WARNING)
    logging.getLogger("mkdocs").addHandler(listener)
    try:
        build(load_config(str(root / "mkdocs.yml"), site_dir=str(site)))
    finally:
        logging.getLogger("mkdocs").removeHandler(listener)
    return heard


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    path = tmp_path_factory.mktemp("site")
    assert built(ROOT, path) == []
    return path


def test_every_page_of_the_repository_is_on_the_site(site):
    pages = [path.stem for path in (ROOT / "docs").glob("*.md")] + ["index", "CONTRIBUTING", "CHANGELOG", "examples"]
    assert [page for page in pages if not (site / f"{page}.html").is_file()] == []
    assert (site / "results" / "figures" / "frontier.png").is_file()
    assert not (site / "hooks.py").exists()


def test_links_of_the_readme_lead_to_pages(site):
    home = (site / "index.html").read_text()
    assert 'href="method.html"' in home
    assert "docs/method.md" not in home


def test_the_reference_has_the_whole_public_interface(site):
    text = (site / "api.html").read_text()
    for name in set(flashbulb.__all__) - {"__version__", "CostVectorEnv"}:
        assert f'id="flashbulb.{name}"' in text, name
    assert 'id="flashbulb.envs.base.CostVectorEnv"' in text


def test_no_page_loads_anything_from_elsewhere(site):
    elsewhere = "(?:https?:)?//"
    loading = (
        rf'<(script|img|iframe|source)[^>]*\ssrc="{elsewhere}|<link[^>]*\shref="{elsewhere}|url\(["\']?{elsewhere}'
    )
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert not re.search(loading, path.read_text()), path.name


@pytest.mark.slow
def test_a_dead_link_is_found(tmp_path):
    """A missing file and a missing anchor each give a warning, which `--strict` turns into a failure."""
    for name in ("docs", "examples", "results"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text() + "\n[one](gone.md) [two](docs/method.md#gone)\n")
    heard = "\n".join(built(tmp_path, tmp_path / "site"))
    assert "gone.md" in heard
    assert "method.md#gone" in heard
