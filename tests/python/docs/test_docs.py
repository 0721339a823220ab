"""Every command on the pages for users is carried out, and prints what the page shows."""

import os
import re

import pages
import pytest

PAGES = ["README.md", "docs/tour.md", "docs/troubleshooting.md"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_followed_to_the_letter(name, tmp_path):
    binary = os.environ.get("PYRITE_BIN")
    assert binary, "set PYRITE_BIN to the path of the pyrite binary"
    assert pages.carry_out(pages.ROOT / name, tmp_path, os.path.abspath(binary)) > 3


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in [*pages.ROOT.glob("*.md"), *pages.ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(pages.ROOT)}: {target}")
    assert broken == []


def test_both_tables_of_variables_have_the_same_names():
    from pyrite import config

    listed = set(re.findall(r"`(PYRITE_\w+)` \|", (pages.ROOT / "docs/reference/environment.md").read_text()))
    assert set(config.ENVIRONMENT) <= listed


def test_a_page_that_promises_too_much_is_found_out(tmp_path):
    page = pages.ROOT / "docs" / "tour.md"
    steps = pages.steps("```sh\necho one two\n```\n\n```text\none …\n```\n")
    assert [(step.words, step.expected) for step in steps] == [("echo one two", ["one …"])]
    assert pages.missing(["one … three"], "one two three\n") is None
    assert pages.missing(["two", "one"], "one\ntwo\n") == "one"
    with pytest.raises(ValueError, match="line 2"):
        pages.steps("```sh not run\npyrite demo\n```\n")
    assert page.exists()
