"""Every number in the prose stands in an output of its notebook, and the check is sharp."""

import pytest
from book_pages import read_all
from prose_rules import EXCEPTIONS, NOTICED, Page, excepted, numbers

PAGES = {name: Page(name, notebook) for name, notebook in read_all().items()}


@pytest.mark.parametrize("name", PAGES)
def test_every_number_in_the_prose_is_supported(name):
    page = PAGES[name]
    wrong = [
        f"{place}: {number.text} in '...{passage(page.prose[place], number)}...'"
        for place, number in page.unsupported()
    ]
    assert not wrong, (
        f"{name}: no output of the two cells before and after supports these numbers, or not on "
        "a line with the others of their sentence (see tools/prose_rules.py):\n" + "\n".join(wrong)
    )


def passage(text, number):
    return " ".join(text[max(0, number.start - 40) : number.start + 40].split())


@pytest.mark.parametrize("text", ["7x faster", "3σ away", "the 2nd", "off by .8123", "`< 1e-7`"])
def test_no_form_of_a_number_escapes(text):
    page = PAGES["00_introduction"]
    assert page.unsupported({"title": text})


def test_changed_last_digits_are_noticed():
    """Change the last digit of each number of the prose in turn, to each of the nine others."""
    unnoticed, changes = [], 0
    for page in PAGES.values():
        for place, text in page.prose.items():
            for number in numbers(text):
                if number.kind == "name":  # k3 for k1 is another word, not a wrong number
                    continue
                at = number.start + max(i for i, c in enumerate(number.text) if c.isdigit())
                for digit in set("0123456789") - {text[at]}:
                    changed = text[:at] + digit + text[at + 1 :]
                    changes += 1
                    if not page.unsupported(page.prose | {place: changed}):
                        unnoticed.append(f"{page.name}, {place}: {number.text} with {digit}")
    share = 1 - len(unnoticed) / changes
    assert changes > 1000
    assert share >= NOTICED, f"{share:.2%} of {changes} noticed:\n" + "\n".join(unnoticed)


@pytest.mark.parametrize("exception", EXCEPTIONS, ids=lambda e: e["passage"])
def test_exceptions_are_needed_and_explained(exception):
    page = PAGES[exception["notebook"]]
    places = [place for place, text in page.prose.items() if exception["passage"] in text]
    assert places, "no such passage"
    assert exception["reason"].strip()
    assert any(
        not support
        for place in places
        for number, support in page.findings(place, page.prose[place])
        if excepted(page.name, page.prose[place], number)
    ), "no longer needed"
