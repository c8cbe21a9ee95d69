"""Find the lines of a cell that printed a number, and the package's functions that they call."""

import ast
import re

import grpo

LINES = 3  # shown of a cell
FUNCTIONS = 2  # linked to


def printed_by(source, output, position):
    """Return (lines of the source, functions of the package) behind a position in an output."""
    tree = ast.parse(source)
    lines = output.splitlines()
    line = lines[position.line]
    if line.startswith("|"):
        row = position.line - next(i for i, one in enumerate(lines) if one.startswith("|")) - 2
        expression = table_cell(tree, row, position.column)
    else:
        expression = print_call(tree, line, position.start)
    if expression is None:
        return [], package_functions([tree])
    shown = [expression, *definitions(tree, expression)]
    numbers = []
    for node in shown:
        own = range(node.lineno, node.end_lineno + 1)
        if len({*numbers, *own}) <= LINES:
            numbers += own
    text = source.splitlines()
    behind = package_functions(shown) or package_functions([tree])
    return [text[number - 1].strip() for number in sorted({*numbers})], behind


def package_functions(nodes):
    """Return the names of the package in some code, in the order of their first use."""
    used = [node.id for tree in nodes for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return package_names(used)


def package_names(words):
    """Return which words name something of the package, each once, the first ones."""
    return [word for word in dict.fromkeys(words) if word in grpo.__all__][:FUNCTIONS]


def print_call(tree, line, start):
    """Return the part of the print that fits a line best in which a character of it stands."""
    best, most = None, -1
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print"):
            continue
        pieces = [piece for value in call.args for piece in [" ", *printed_pieces(value)]][1:]
        pattern = "".join(
            f"({re.escape(piece)})" if isinstance(piece, str) else "(.*?)" for piece in pieces
        )
        match = re.fullmatch(pattern, line)
        literal = sum(len(piece) for piece in pieces if isinstance(piece, str))
        if match and literal > most:
            most = literal
            inside = [
                i for i in range(len(pieces)) if match.start(i + 1) <= start < match.end(i + 1)
            ]
            piece = pieces[inside[0]] if inside else call
            best = call if isinstance(piece, str) else piece
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
                if isinstance(node, ast.Assign) and rows.id in assigned_names(node)
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


def definitions(tree, expression):
    """Return the last assignments before an expression to the names in it, shortest first."""
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.end_lineno < expression.lineno:
            for name in names & assigned_names(node):
                if name not in found or found[name].lineno < node.lineno:
                    found[name] = node
    nodes = {id(node): node for node in found.values()}.values()
    return sorted(nodes, key=lambda node: (node.end_lineno - node.lineno, -node.lineno))


def assigned_names(assignment):
    """Return the names that an assignment binds."""
    return {
        node.id
        for target in assignment.targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name)
    }
