"""Find the lines of a cell that printed a number, and the package's functions that they call."""

import ast
import re

import grpo

LINES = 3  # shown of a cell
FUNCTIONS = 2  # linked to


def printed_by(source, output, position, imported):
    """Return (lines of the source, imported functions) behind a position in an output.

    The functions of the whole cell stand for code that is not found or too long.
    """
    tree = ast.parse(source)
    lines = output.splitlines()
    line = lines[position.line]
    if line.startswith("|"):
        row = position.line - next(i for i, one in enumerate(lines) if one.startswith("|")) - 2
        expression = table_cell(tree, row, position.column)
    elif any(one.startswith("|") for one in lines):
        expression = table_caption(tree)
    else:
        expression = print_call(tree, line, position.start)
    if expression is None:
        functions = functions_in(tree, imported)
        if functions or not isinstance(tree.body[-1], ast.Expr):
            return [], functions
        expression = tree.body[-1].value  # a function of the notebook made the output
    shown = definitions(tree, expression)
    if not (isinstance(expression, ast.Name) and shown):  # the name of a column says nothing
        shown.insert(0, (expression.lineno, expression.end_lineno))
    numbers = set()
    for first, last in shown:
        own = range(first, last + 1)
        if len(numbers.union(own)) <= LINES:
            numbers.update(own)
    code = [source.splitlines()[number - 1].strip() for number in sorted(numbers)]
    stored = {node.id for node in ast.walk(tree) if is_stored(node)}
    words = re.findall(r"\w+", " ".join(code))
    if not code:
        return [], functions_in(expression, imported) or functions_in(tree, imported)
    return code, used_names(words, imported - stored)


def imported_functions(cells):
    """Return what the cells of a notebook import from the package."""
    return {
        alias.name
        for cell in cells
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.ImportFrom) and node.module == "grpo"
        for alias in node.names
        if callable(getattr(grpo, alias.name, None))
    }


def functions_in(tree, imported):
    """Return the imported functions that some code calls, in the order of the text."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [call.func for call in calls if isinstance(call.func, ast.Name)]
    names.sort(key=lambda name: (name.lineno, name.col_offset))
    return used_names([name.id for name in names], imported)


def used_names(words, imported):
    """Return which words are imported from the package, each once, the first ones."""
    return [word for word in dict.fromkeys(words) if word in imported][:FUNCTIONS]


def print_call(tree, line, start):
    """Return the part of the print that fits a line best in which a character of it stands."""
    best, most = None, -1
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print"):
            continue
        pieces = []
        for value in call.args:
            pieces += [(" ", value)] * bool(pieces)
            pieces += [(piece, value) for piece in printed_pieces(value)]
        pattern = "".join(
            f"({re.escape(piece)})" if isinstance(piece, str) else "(.*?)" for piece, _ in pieces
        )
        match = re.fullmatch(pattern, line)
        literal = sum(len(piece) for piece, _ in pieces if isinstance(piece, str))
        if match and literal > most:
            most, best = literal, call
            for i, (piece, value) in enumerate(pieces, 1):
                if match.start(i) <= start < match.end(i):
                    best = value if isinstance(piece, str) else piece
    return best


def printed_pieces(value):
    """Return what an argument of print consists of: text, and expressions."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return [value.value]
    if isinstance(value, ast.JoinedStr):
        return [part.value if isinstance(part, ast.Constant) else part for part in value.values]
    return [value]


def table_cell(tree, row, column):
    """Return the expression in a row and a column of the table that a cell makes."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    tables = [call.args[0] for call in calls if getattr(call.func, "attr", "") == "table"]
    for rows in tables[-1:]:
        if isinstance(rows, ast.Name):
            added = [
                call.args[0]
                for call in calls
                if getattr(call.func, "attr", "") == "append"
                and getattr(call.func.value, "id", "") == rows.id
            ]
            assigned = [
                node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Assign)
                and rows.id in {one.id for one in node.targets if is_stored(one)}
            ]
            rows = added[-1] if added else assigned[-1] if assigned else rows
        if isinstance(rows, ast.ListComp):
            rows = rows.elt
        elif isinstance(rows, ast.List) and all(isinstance(one, ast.List) for one in rows.elts):
            rows = rows.elts[row] if 0 <= row < len(rows.elts) else rows
        cells = rows.elts if isinstance(rows, ast.List) else [rows]
        several = next((one for one in cells if isinstance(one, ast.Starred)), cells[-1])
        plain = column < len(cells) and not any(
            isinstance(one, ast.Starred) for one in cells[: column + 1]
        )
        return cells[column] if plain else several
    return None


def table_caption(tree):
    """Return the expression of the caption of the table that a cell makes."""
    captions = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "caption"
    ]
    return captions[-1] if captions else None


def definitions(tree, expression):
    """Return the lines of the last binding before an expression of each name in it.

    That is an assignment, a loop, or a loop inside a list; the shortest comes first.
    """
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, first, last = node, node.lineno, node.end_lineno
            before = last < expression.lineno
        elif isinstance(node, ast.For | ast.comprehension):
            target, first, last = node.target, node.target.lineno, node.iter.end_lineno
            before = isinstance(node, ast.comprehension) or (
                last < expression.lineno <= node.end_lineno
            )
        else:
            continue
        for name in names & {one.id for one in ast.walk(target) if is_stored(one)}:
            if before and (name not in found or found[name] < (first, last)):
                found[name] = first, last
    return sorted(set(found.values()), key=lambda span: (span[1] - span[0], -span[0]))


def is_stored(node):
    """Return whether a node of a syntax tree gives a value to a name."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
