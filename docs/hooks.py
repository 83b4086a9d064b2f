"""Pages of the site that are kept elsewhere in the repository: README, examples, CONTRIBUTING, CHANGELOG, results/.

A link in a page is written for readers of the repository, relative to the page's file. The site has docs/ as its root,
so every such link is rewritten to where its target is on the site, and the name of a file becomes the title of its
page. A link to what is not on the site is left as it is, and fails the build.
"""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from griffe import Extension, Function, Module
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
TEXTS = ("CONTRIBUTING.md", "CHANGELOG.md")
DATA = (".md", ".csv", ".png", ".html")  # of results/
LINK = re.compile(r"\[([^\[\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files from outside docs/."""
    own = {file.src_uri: f"docs/{file.src_uri}" for file in files}
    pages = {"index.md": "README.md", **{name: name for name in TEXTS}}
    pages |= {relative(path): relative(path) for path in sorted((ROOT / "results").rglob("*")) if path.suffix in DATA}
    for uri, source in pages.items():
        path = ROOT / source
        content: str | bytes = path.read_text() if path.suffix == ".md" else path.read_bytes()
        files.append(File.generated(config, uri, content=content))
    files.append(File.generated(config, "examples.md", content=examples_page()))
    config.extra["sources"] = own | pages | {"examples.md": "examples"}
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite links between files of the repository to links between pages of the site."""
    sources = config.extra["sources"]
    places = {source: uri for uri, source in sources.items()}
    here = page.file.src_uri
    inside = posixpath.dirname(sources[here])
    titles = {
        uri: title
        for section in config.nav
        for group in section.values()
        for page in group
        for title, uri in page.items()
    }

    def site_link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(inside, match[2]))
        place = places.get(target, places.get(f"{target}/README.md"))
        if place is None:
            return match[0]
        words = titles.get(place, match[1]) if match[1].endswith(".md") else match[1]
        return f"[{words}]({posixpath.relpath(place, posixpath.dirname(here) or '.')}"

    return LINK.sub(site_link, markdown)


def examples_page() -> str:
    """Every script and notebook of examples/, as text."""
    parts = ["# Examples\n\nShort scripts to run and change; the files are in `examples/`.\n"]
    for path in sorted((ROOT / "examples").glob("*.ipynb")) + sorted((ROOT / "examples").glob("*.py")):
        body = notebook_text(path) if path.suffix == ".ipynb" else f"```python\n{path.read_text()}```\n"
        parts.append(f"## {path.name}\n\n{body}")
    return "\n".join(parts)


def notebook_text(path: Path) -> str:
    """The cells of a notebook as Markdown, its headings below that of the file."""
    cells = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        is_code = cell["cell_type"] == "code"
        cells.append(f"```python\n{text}\n```\n" if is_code else re.sub(r"^#+", "###", text, flags=re.MULTILINE) + "\n")
    return "\n".join(cells)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class FunctionsFirst(Extension):
    """For the reference, `flashbulb.report` is the function, as it is for `import flashbulb`, and not the package."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}

    def on_function_instance(self, *, func: Function, **_: Any) -> None:
        if func.path == f"flashbulb.{func.name}":
            self.functions[func.name] = func

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        for name, function in self.functions.items():
            pkg.members[name] = function
