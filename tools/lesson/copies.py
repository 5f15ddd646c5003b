"""A definition of a lesson with all that it needs: one click copies what runs elsewhere.

The lessons define a function or a class where it is explained; what it uses stands in cells above.
`blocks` finds the imports, helpers and constants that it needs, in the order of the lesson.
"""

import ast
import itertools
import re
import symtable
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

from tools.lesson import lessons

COPIED = {"short-answer", "tuned-pipeline", "files-pipeline", "copy"}
COMES_WITH = {"absl": "grain"}  # whose flags and log are Grain's: a setting of the one is of both
COMMENT = re.compile(r"\A(?:# .*\n)+")
PASSED_OVER = {"trap", "exercise", "proof", lessons.GPU_TAG}


class Statement(NamedTuple):
    """A statement of a lesson that others may need. An import of several names is several."""

    cell: int
    source: str
    binds: frozenset[str]
    uses: frozenset[str]
    imports: ast.Import | ast.ImportFrom | None = None

    @property
    def code(self) -> str:
        """Its source without the comment above it."""
        return COMMENT.sub("", self.source)

    @property
    def is_definition(self) -> bool:
        """Whether it defines a function or a class."""
        return self.code.startswith(("def ", "class ", "@"))

    @property
    def may_stand_below(self) -> bool:
        """Whether a function may be defined above it: it is there when the function is called."""
        return self.is_definition or self.imports is not None


def blocks(notebook: NotebookNode) -> dict[int, str]:
    """For each code cell that a reader copies: its number, and the cell with all that it needs.

    Left out are cells whose definitions another of these cells uses, which then has them, cells
    that need nothing, and those that need a module that the lesson writes.
    """
    cells = lessons.code_cells(notebook)
    statements = [*itertools.chain.from_iterable(map(statements_of, itertools.count(), cells))]
    written = {module_of(cell) for cell in cells if writes(cell)}
    copied = [number for number, cell in enumerate(cells) if is_copied(cell)]
    needed = {number: closure({number}, statements) for number in copied}
    found = {}
    for number in copied:
        used = {statement for n in copied if n > number for statement in needed[n]}
        own = {s for s in needed[number] if s.cell == number and s.is_definition}
        alone = all(statement.cell == number for statement in needed[number])
        modules = {imported_from(s.imports) for s in needed[number] if s.imports}
        if not (own <= used or alone or written & modules):
            found[number] = program(needed[number])
    return found


def writes(cell: NotebookNode) -> bool:
    return cell.source.startswith("%%writefile")


def module_of(cell: NotebookNode) -> str:
    """The name of the module that a cell with `%%writefile` writes."""
    return Path(cell.source.split()[1]).stem


def imported_from(node: ast.Import | ast.ImportFrom) -> str:
    """The name of the module that an import of one name asks for."""
    return node.module if isinstance(node, ast.ImportFrom) else node.names[0].name


def is_copied(cell: NotebookNode) -> bool:
    """Whether the cell defines a function or a class that readers copy, folded or not."""
    tags = set(lessons.tags(cell))
    if not tags & COPIED or tags & PASSED_OVER or writes(cell):
        return False
    defines = ast.FunctionDef | ast.ClassDef
    return any(isinstance(node, defines) for node in lessons.python(cell.source).body)


def statements_of(number: int, cell: NotebookNode, written: bool = False) -> Iterator[Statement]:
    """The statements of a cell that bind a name, and the settings that a setup cell makes.

    `written`: also those of a module that the cell writes into a file.
    """
    if PASSED_OVER & set(lessons.tags(cell)) or (writes(cell) and not written):
        return
    source = cell.source.partition("\n")[2] if writes(cell) else cell.source
    lines = source.splitlines()
    for node in lessons.python(cell.source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                only = type(node)(**dict(ast.iter_fields(node)) | {"names": [alias]})
                yield Statement(number, "", frozenset({name}), frozenset(), only)
            continue
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        while first > 1 and lines[first - 2].startswith("# ") and "@title" not in lines[first - 2]:
            first -= 1  # a comment above comes along
        source = "\n".join(lines[first - 1 : node.end_lineno])
        table = symtable.symtable(ast.unparse(node), "cell", "exec")
        binds = {s.get_name() for s in table.get_symbols() if s.is_assigned()}
        defines = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign)
        if (binds and defines) or is_setting(node, cell):
            uses = lessons.names_used(table) - ({*binds} if isinstance(node, ast.Assign) else set())
            yield Statement(number, source, frozenset(binds), frozenset(uses))


def is_setting(node: ast.stmt, cell: NotebookNode) -> bool:
    """Whether the statement calls a function of a library, such as to configure it.

    What only prints is none, nor what stands in a cell that shows something.
    """
    call = node.value if isinstance(node, ast.Expr) and not writes(cell) else None
    dotted = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    # How many devices JAX pretends to have is the page's affair.
    above = {"setup", "short-answer"} & {*lessons.tags(cell)} or lessons.from_tag(cell)
    return dotted and bool(above) and "jax.config" not in ast.unparse(call)


def closure(cells: set[int], statements: list[Statement]) -> list[Statement]:
    """The statements that these cells need, in their order: of themselves and of those above them.

    What none of them defines, a function, a class or an import further below does.
    """
    found = set().union(*(needed_by(number, statements) for number in cells))
    libraries = {name for i in found if statements[i].imports for name in statements[i].binds}
    libraries |= {name for name, library in COMES_WITH.items() if library in libraries}
    # A setting of these libraries alone comes with them.
    settings = {
        i
        for i, s in enumerate(statements)
        if s.cell <= max(cells) and not s.binds and set() < s.uses <= libraries
    }
    configured = set().union(*(statements[i].uses for i in settings))
    imports = {i for i, s in enumerate(statements) if s.imports and s.binds & configured}
    return [s for i, s in enumerate(statements) if i in found | settings | imports]


def needed_by(number: int, statements: list[Statement]) -> set[int]:
    """The indices of the statements that the definitions of a cell need, and their own."""
    wanted = {i for i, s in enumerate(statements) if s.cell == number and s.is_definition}
    waiting = [*wanted]
    while waiting:
        for name in statements[waiting.pop()].uses:
            bound = [i for i, s in enumerate(statements) if name in s.binds]
            found = [i for i in bound if statements[i].cell <= number]
            if not found:
                found = [i for i in bound if statements[i].may_stand_below][:1]
            if found and not statements[found[-1]].imports:
                found = found[-1:]  # the definition that holds in this cell
            waiting += set(found) - wanted
            wanted.update(found)
    return wanted


def program(statements: list[Statement], origins: dict[int, str] | None = None) -> str:
    """The code, with the names that come from one module in one import.

    `origins`: of a cell, by its number, a comment that stands above what is taken from it.
    """
    imports, body = {}, []
    for statement in statements:
        node = statement.imports
        if isinstance(node, ast.ImportFrom):
            names = imports.setdefault(node.module, [])
            names += [alias for alias in node.names if alias.name not in {n.name for n in names}]
        elif node:
            imports.setdefault(ast.unparse(node), [])
        else:
            body.append(statement)
    lines = [
        ast.unparse(ast.ImportFrom(module=start, names=names, level=0)) if names else start
        for start, names in imports.items()
    ]
    parts = ["\n".join(lines)]
    before = True  # an import, a function or a class: blank lines follow
    cell = None
    for statement in body:
        large = statement.is_definition
        blank = "\n\n" if large else "\n" if before else ""
        if origins and statement.cell != cell:
            blank = f"\n\n{origins[statement.cell]}\n\n"
        parts.append(blank + statement.source)
        before, cell = large, statement.cell
    return "\n".join(parts).strip()
