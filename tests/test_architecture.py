"""The architecture, read from the syntax of the package: who imports whom, what is documented, what is named twice."""

import ast
import collections
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "flashbulb"
# A package may import only packages before it, and the base modules at the top level.
ORDER = [
    "envs",
    "memory",
    "algorithms",
    "storage",
    "analysis",
    "plots",
    "training",
    "studies",
    "report",
    "theory",
    "cli",
]
PACKAGES = [path.name for path in sorted(SOURCE.iterdir()) if (path / "__init__.py").exists()]
MODULES = sorted(SOURCE.rglob("*.py"))

# Exceptions that have a reason.
THEORY_MAY_USE = {"memory"}  # the statements are about the memory's cost; one module checks a step as it is trained
THEORY_STEP = ("theory/actual_step.py", "algorithms")
FACADE = {"__init__", "__main__"}  # the public interface may use every package
SAME_NAME = {  # public names with one meaning in several modules
    "main",  # entry points
    "make",  # of a task's module, by which the registry makes it
    *("begin", "judge", "fast_step"),  # of the navigation tasks
}

# What fails today, to be emptied.
KNOWN_IMPORTS: set[tuple[str, str]] = set()
KNOWN_DUPLICATE_NAMES: set[str] = set()
KNOWN_DUPLICATE_FILES: set[str] = {"registry"}  # of tasks, and of algorithms
KNOWN_UNDOCUMENTED: set[str] = set()


def relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def package_of(path: Path) -> str:
    """The package of a file, or the name of the base module that it is."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def imported(path: Path) -> set[str]:
    """Packages and base modules of ours that a file imports, also within functions, but not for type checking only."""
    found = set()
    for node in runtime_nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{relative(path)}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("flashbulb.")}
    return found - {"__version__"}


def runtime_nodes(tree: ast.AST):
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from runtime_nodes(child)


def import_graph() -> dict[str, set[str]]:
    """Package -> packages that it imports."""
    graph = collections.defaultdict(set)
    for path in MODULES:
        graph[package_of(path)] |= imported(path) - {package_of(path)}
    return graph


def allowed(path: Path, target: str) -> bool:
    package = package_of(path)
    if package in FACADE or target == package or target not in ORDER:
        return True
    if package not in ORDER:
        return False  # a base module imports base modules only
    if package == "theory":
        return target in THEORY_MAY_USE or (relative(path), target) == THEORY_STEP
    return ORDER.index(target) <= ORDER.index(package)


def test_every_package_has_its_place():
    assert set(PACKAGES) == set(ORDER)


def test_imports_point_downwards():
    wrong = {(relative(path), target) for path in MODULES for target in imported(path) if not allowed(path, target)}
    assert not wrong - KNOWN_IMPORTS


def test_base_modules_do_not_import_each_other_in_a_circle():
    graph = import_graph()
    base = [path.stem for path in SOURCE.glob("*.py") if path.stem not in FACADE]
    visited: set[str] = set()

    def visit(name, above):
        assert name not in above, " -> ".join([*above, name])
        if name not in visited:
            for target in graph[name]:
                visit(target, [*above, name])
            visited.add(name)

    for name in base:
        visit(name, [])


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_what_they_hold(package):
    text = ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text())) or ""
    if package not in KNOWN_UNDOCUMENTED:
        assert len(text.splitlines()) >= 2, f"{package}/__init__.py must say what it holds and what it may use"


def test_the_table_of_contributing_lists_every_package():
    table = re.findall(r"^\| `(\w+)/` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert table == ORDER


def test_what_is_imported_is_declared():
    """Every library that the package imports is a dependency, or one of the optional ones."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = [name for extra, names in project["optional-dependencies"].items() if extra != "dev" for name in names]
    declared = {re.match(r"[\w-]+", name)[0].lower() for name in project["dependencies"] + optional}
    distributions = {
        "PIL": "pillow",
        "yaml": "pyyaml",
        "annotated_types": "annotated-types",
        "tensorboardX": "tensorboardx",
    }
    ours = {"flashbulb", *sys.stdlib_module_names}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in {name.partition(".")[0] for name in names} - ours:
                assert distributions.get(name, name) in declared, f"{relative(path)} imports {name}"


def test_file_names_are_unique():
    names = collections.Counter(path.stem for path in MODULES if path.stem not in FACADE)
    assert not {name for name, count in names.items() if count > 1} - KNOWN_DUPLICATE_FILES


def test_public_names_are_unique():
    places = collections.defaultdict(list)
    for path in MODULES:
        if relative(path) == "__init__.py":
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(relative(path))
    twice = {name: where for name, where in places.items() if len(where) > 1 and name not in SAME_NAME}
    assert not set(twice) - KNOWN_DUPLICATE_NAMES, {name: twice[name] for name in set(twice) - KNOWN_DUPLICATE_NAMES}
