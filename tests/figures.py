"""Plugin of pytest: the figures of a notebook, compared with those that nbval's run drew.

nbval runs each cell and compares what it printed, but no pictures (see `nbval_sanitize.cfg`).
This compares the pictures of the same run. Coordinates may move by half a pixel. Everything else,
such as colours, widths, scales, angles and the glyphs of the labels, is compared to the character.
Identifiers are made from coordinates, so they are numbered in order of appearance first.
"""

import re
from xml.etree import ElementTree

import pytest
from book_pages import svg_outputs
from nbformat import NotebookNode
from nbval.plugin import IPyNbCell

HALF_A_PIXEL = 0.5
FACTORS = re.compile(r"(?:scale|rotate|matrix)\([^)]*\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
COORDINATES = {"d", "x", "y", "width", "height", "viewBox", "transform", "points"}
IDENTIFIER = re.compile(r"\b[a-z][0-9a-f]{10}\b")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Compare the pictures of a cell after nbval has run it and found its text right."""
    result = yield
    if isinstance(item, IPyNbCell):
        stored = svg_outputs(item.cell)
        fresh = svg_outputs(NotebookNode(outputs=item.test_outputs))
        found = [
            text
            for pair in zip(stored, fresh, strict=True)
            for text in differences(*map(elements, pair))
        ]
        if found:
            item.raise_cell_error("The figure differs from the stored one", "\n".join(found))
    return result


def elements(svg):
    """Return [(tag, attributes, text)] of a picture with its identifiers numbered."""
    order = {}
    svg = IDENTIFIER.sub(lambda match: order.setdefault(match[0], f"id{len(order)}"), svg)
    return [
        (element.tag, element.attrib, (element.text or "").strip())
        for element in ElementTree.fromstring(svg).iter()
    ]


def differences(stored, fresh):
    """Return in words what differs between two pictures."""
    if len(stored) != len(fresh):
        return [f"{len(stored)} elements stored, {len(fresh)} drawn"]
    found = []
    for (tag, old, old_text), (new_tag, new, new_text) in zip(stored, fresh, strict=True):
        if (tag, old_text, list(old)) != (new_tag, new_text, list(new)):
            found.append(f"{tag} {old_text} became {new_tag} {new_text}")
            continue
        for key in old:
            before, after = NUMBER.findall(old[key]), NUMBER.findall(new[key])
            moved = [abs(float(a) - float(b)) for a, b in zip(before, after, strict=False)]
            same = (
                key in COORDINATES
                and NUMBER.sub("#", old[key]) == NUMBER.sub("#", new[key])
                and FACTORS.findall(old[key]) == FACTORS.findall(new[key])
                and max(moved, default=0) <= HALF_A_PIXEL
            )
            if not same and old[key] != new[key]:
                found.append(f"{tag} {key}: {old[key][:60]} became {new[key][:60]}")
    return found
