"""Every page in Chromium under axe: read, with a card open, with the search open."""

import pytest
import refresh
import site_assets
from chromium import needs_chromium, open_search, visit

pytestmark = needs_chromium
PAGES = [path.stem for path in refresh.notebooks()] + ["api", "references"]
PHONE, WIDE = 390, 1280
CARD = "a.number >> visible=true"  # opens the card of a number; `prepare` empties formulas
# docutils writes the list of references with roles that axe does not accept together. Formulas
# are MathJax's own and have their own reading aids.
AXE = """part => axe.run(
    {include: [part], exclude: ['.citation-list', 'mjx-container']},
    {preload: false, resultTypes: ['violations']},
)"""
# The colour of a piece of code depends on its class alone: one of each class stays, the others
# become plain text of their line. They are most of a page's elements, and of the time.
ONE_OF_EACH = """() => {
    const seen = new Set();
    for (const piece of document.querySelectorAll('.highlight span[class]'))
        if (seen.has(piece.className)) piece.replaceWith(piece.textContent);
        else seen.add(piece.className);
    document.querySelectorAll('mjx-container').forEach(formula => formula.replaceChildren());
}"""


@pytest.mark.parametrize("name", PAGES)
def test_page_is_readable_by_everybody(page, address, name):
    prepare(page, address, name)
    found = serious(page, PHONE, "dark") + serious(page, WIDE, "light")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", [PAGES[0], "08_which_convention"])
def test_page_is_readable_with_width_and_theme_exchanged(page, address, name):
    prepare(page, address, name)
    found = serious(page, PHONE, "light") + serious(page, WIDE, "dark")
    assert not found, "\n".join(found)


def prepare(page, address, name):
    page.set_viewport_size({"width": PHONE, "height": 800})
    visit(page, address, name)
    page.add_script_tag(path=site_assets.MODULES / "axe-core" / "axe.min.js")
    page.add_style_tag(content="* { transition: none !important; animation: none !important; }")
    page.evaluate(ONE_OF_EACH)


def serious(page, width, theme):
    """Return what axe finds serious or critical in the page and in its search."""
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    if page.locator(CARD).count():
        page.locator(CARD).first.click()
    found = page.evaluate(AXE, "body")["violations"]
    page.keyboard.press("Escape")
    open_search(page)
    page.fill("#pst-search-dialog input", "why is my loss zero")
    page.wait_for_selector("#search-hits mark")
    found += page.evaluate(AXE, "#pst-search-dialog")["violations"]
    page.keyboard.press("Escape")
    return [
        f"{width} {theme}: {violation['id']}: {node['html'][:200]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
