"""The faults: every small change of a module's source that its tests ought to notice.

A mutant replaces one span of the text, so that all else, line numbers included, stays as it is. Left out is what only
speaks to people or to the type checker: docstrings, f-strings, annotations, assertions, what is raised and printed; and
what is the same for certain: the arguments of a maximum swapped, a `strict` that is let go, or a -1 of `reshape`.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS = {
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"),
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",),
    ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*", ast.Pow: "*",
    ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
NAMES = {"min": "max", "minimum": "maximum", "any": "all", "argmin": "argmax", "floor": "ceil", "zeros": "ones",
         "zeros_like": "ones_like", "mean": "sum"}  # fmt: skip
NAMES |= {other: name for name, other in NAMES.items() if name != "mean"}
SYMMETRIC = {"min", "max", "minimum", "maximum", "logical_and", "logical_or", "array_equal"}
SPOKEN = {"print", "_say", "update", "add_task", "UsageError", "RunError", "_refuse", "TypeVar", "isinstance", "cast"}


class Mutant(NamedTuple):
    """One fault. `key` names it by what it changes and not by its line, so that it survives edits elsewhere."""

    module: str  # such as memory/balance.py
    line: int
    operator: str
    before: str
    after: str
    start: int  # of the span, in bytes
    end: int
    key: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants_of(module: str, source: bytes) -> list[Mutant]:
    """Every mutant of a module, in the order of the text."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    found, count, seen = [], Counter[str](), set()
    for (start, end, operator, after), scope in sorted(finder.found.items()):
        before = source[start:end].decode()
        if before == after or (start, end, after) in seen:
            continue
        seen.add((start, end, after))
        name = f"{module} {scope} {operator} {before} -> {after}"
        count[name] += 1
        key = hashlib.sha256(f"{name} {count[name]}".encode()).hexdigest()[:12]
        found.append(Mutant(module, source[:start].count(b"\n") + 1, operator, before, after, start, end, key))
    return found


class _Finder(ast.NodeVisitor):
    """Collects (start, end, operator, replacement) -> the function it is in."""

    def __init__(self, source: bytes) -> None:
        self.source, self.scope = source, "module"
        self.lines = [0, *(i + 1 for i, byte in enumerate(source) if byte == 10)]
        self.found: dict[tuple[int, int, str, str], str] = {}

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def add(self, node: ast.AST, operator: str, after: str) -> None:
        self.found[(*self.span(node), operator, after)] = self.scope

    def swap(self, left: ast.AST, right: ast.AST, operator: str, before: str, after: str) -> None:
        """Replace the sign between two operands."""
        begin, end = self.span(left)[1], self.span(right)[0]
        at = self.source.find(before.encode(), begin, end)
        if at >= 0:
            self.found[(at, at + len(before.encode()), operator, after)] = self.scope

    # Where no fault is looked for.

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    visit_Assert = visit_Raise = visit_Import = visit_ImportFrom = visit_JoinedStr  # type: ignore[assignment]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self.scope = self.scope, f"{self.scope}.{node.name}"
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(default)
        if node.name != "__repr__":
            self.body(node.body)
        self.scope = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self.scope = self.scope, f"{self.scope}.{node.name}"
        self.body(node.body)
        self.scope = outer

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    # Statements.

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in self.text(node.test):
            return
        if "isinstance" not in self.text(node.test):
            self.add(node.test, "condition", f"not ({self.text(node.test)})")
        self.generic_visit(node)

    visit_While = visit_IfExp = visit_If  # type: ignore[assignment]

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) or _speaks(node.value):
            return
        self.removal(node)

    def removal(self, node: ast.stmt) -> None:
        self.add(node, "removed statement", "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self.add(node, "removed statement", "pass")
        self.visit(node.value)

    visit_Break = visit_Continue = removal  # type: ignore[assignment]

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        other = ARITHMETIC.get(type(node.op))
        if other:
            sign = {"-": "+=", "+": "-=", "/": "*=", "*": "/=", "|": "&=", "&": "|="}[other]
            self.swap(node.target, node.value, "arithmetic", sign, f"{other}=")
        self.removal(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and self.text(node.value) != "None":
            if not isinstance(node.value, ast.JoinedStr):
                self.add(node.value, "return", "None")
            self.visit(node.value)

    # Expressions.

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, sign, right in zip((node.left, *node.comparators), node.ops, node.comparators, strict=False):
            before = {ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}.get(type(sign))
            before = (
                before
                or {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!="}[type(sign).__name__]
            )
            for after in COMPARISONS[type(sign)]:
                self.swap(left, right, "comparison", before, after)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
                 ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|"}  # fmt: skip
        if type(node.op) in signs and not _types(node):
            self.swap(node.left, node.right, "arithmetic", signs[type(node.op)], ARITHMETIC[type(node.op)])
            self.add(node, "removed term", f"({self.text(node.left)})")
            if not isinstance(node.op, ast.Pow | ast.FloorDiv | ast.Mod):
                self.add(node, "removed term", f"({self.text(node.right)})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.add(node, "sign", f"({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        before, after = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.swap(left, right, "boolean", before, after)
        for value in node.values:
            self.add(node, "removed term", f"({self.text(value)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add(node, "constant", str(not node.value))
        elif isinstance(node.value, int):
            self.add(node, "constant", str(node.value + 1))
        elif isinstance(node.value, float):
            self.add(node, "constant", repr(2 * node.value or 1.0))

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: only guards against faults elsewhere
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if _speaks(node):
            return
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in NAMES:
            start, end = self.span(node.func)
            self.found[(end - len(name), end, "name", NAMES[name])] = self.scope
        if len(node.args) > 1 and name not in SYMMETRIC and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
            first, second = node.args[:2]
            start, end = self.span(first)[0], self.span(second)[1]
            between = self.source[self.span(first)[1] : self.span(second)[0]].decode()
            self.found[(start, end, "swapped arguments", self.text(second) + between + self.text(first))] = self.scope
        if name == "reshape":  # any negative number is what -1 is
            self.visit(node.func)
            for argument in node.args:
                if isinstance(argument, ast.UnaryOp):
                    self.add(argument, "sign", f"({self.text(argument.operand)})")
                else:
                    self.visit(argument)
            return
        self.generic_visit(node)


def _speaks(node: ast.AST) -> bool:
    func = getattr(node, "func", None)
    return getattr(func, "attr", getattr(func, "id", "")) in SPOKEN


def _types(node: ast.BinOp) -> bool:
    """Whether `|` joins types, or the operands are texts."""
    constants = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
    texts = any(isinstance(side, ast.JoinedStr) for side in (node.left, node.right))
    return texts or any(value is None or isinstance(value, str) for value in constants)


def sample(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, chosen by a hash of the seed and their keys.

    Spread evenly over the packages, and in each of them over its modules in proportion to their mutants. A longer
    sample begins with the shorter ones.
    """
    modules: dict[str, list[Mutant]] = {}
    for mutant in sorted(mutants, key=lambda m: _hash(f"{seed} {m.key}")):
        modules.setdefault(mutant.module, []).append(mutant)
    packages: dict[str, list[tuple[float, Mutant]]] = {}
    for module, found in modules.items():
        first = _hash(f"{seed} {module}") / 2**64
        places = ((first + turn) / len(found) for turn in range(len(found)))
        packages.setdefault(module.split("/")[0], []).extend(zip(places, found, strict=True))
    orders = [[mutant for _, mutant in sorted(found)] for _, found in sorted(packages.items())]
    return list(_interleaved(orders))[:count]


def _hash(text: str) -> int:
    """A number below 2^64."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _interleaved(orders: list[list[Mutant]]) -> Iterator[Mutant]:
    for turn in range(max(map(len, orders), default=0)):
        yield from (found[turn] for found in orders if turn < len(found))
