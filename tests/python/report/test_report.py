"""The report in a real browser: what is on it, what mouse and keyboard do, and how long that takes.

Chromium is Debian's package; `cargo xtask test` installs it where it may. Without a browser these tests are skipped and
say so. Pictures are kept where PYRITE_SCREENSHOTS names a folder.
"""

import os
import pathlib

import browser
import pytest
import traces

pytestmark = pytest.mark.skipif(
    browser.find() is None, reason="no Chromium is installed: `apt-get install chromium` puts it there"
)

# The bar for an interaction, in milliseconds.
INTERACTION = 100.0


@pytest.fixture(scope="module")
def chromium():
    with browser.Browser(browser.find()) as running:
        yield running


@pytest.fixture(scope="module")
def pages(pyrite, tmp_path_factory):
    """Reports of a small session, of one with 3,000 nodes, of two that are compared, and of an error."""
    folder = tmp_path_factory.mktemp("report")
    model = folder / "model.py"
    model.write_text('def forward(x):\n    y = x.relu()\n    print("here")\n    return y\n')
    small = traces.session(folder / "small", source=model)
    big = traces.session(folder / "big", layers=100, first="gelu_40")
    other = traces.session(folder / "other", layers=2, first="none")
    pyrite("report", small, "--out", folder / "small.html")
    pyrite("report", big)
    pyrite("report", small, "--compare", other, "--out", folder / "two.html")
    pyrite("report", traces.failed_unet(folder / "error"))
    return {"small": folder / "small.html", "big": big / "report.html", "two": folder / "two.html", "error": folder / "error" / "report.html"}


def photograph(page, request):
    """Keeps a picture of the page that a test ends with."""
    folder = os.environ.get("PYRITE_SCREENSHOTS")
    if folder:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(pathlib.Path(folder) / f"{request.node.name}.png")


@pytest.fixture
def page(chromium, pages, request):
    page = chromium.open(pages["small"])
    yield page
    photograph(page, request)
    page.close()


@pytest.fixture
def big(chromium, pages, request):
    page = chromium.open(pages["big"])
    page.click("#tab-graphs")
    yield page
    photograph(page, request)
    page.close()


def took(page, script):
    """The shortest of five times that an interaction takes, drawing included, in milliseconds."""
    return page.eval(
        "(() => { let best = Infinity; for (let n = 0; n < 5; n += 1) { const start = performance.now(); %s;"
        " graphPanel.canvas.paint(); best = Math.min(best, performance.now() - start); } return best; })()" % script
    )


def test_the_page_loads_nothing_and_throws_nothing(page):
    tabs = page.eval("[...document.querySelectorAll('#tabs button')].map((tab) => tab.firstChild.textContent)")
    assert tabs == ["Overview", "Stages", "Graphs", "Kernels", "Capture", "Minification", "Files"]
    for number in range(1, 8):
        page.key(str(number))
    assert page.problems() == []


def test_the_overview_has_the_findings_and_a_repro_that_can_be_copied(page):
    assert page.text("#title") == "native: value"
    assert "3 of 3 runs" in page.text(".steps")
    assert page.text("#repro pre") == traces.REPRO
    page.eval("navigator.clipboard.writeText = async (text) => { window.copied = text; }; 0")
    page.click("#repro .copy")
    assert page.eval("window.copied") == traces.REPRO
    assert page.text("#repro .copy") == "Copied"


def answers(page):
    return dict(page.eval("[...document.querySelectorAll('#answers dt')].map((dt) => [dt.textContent, dt.nextSibling.textContent])"))


def test_the_overview_answers_what_where_how_small_how_sure_and_how_long(page):
    found = answers(page)
    assert found["What failed"] == "native: value"
    assert found["Where"].startswith("gelu_1 aten.gelu.default · f32 [8, 16] · layers.1.mlp")
    assert found["How small"].startswith("40 → 3 nodes, 4\u202f000 → 300 elements: 7 queries")
    assert found["How sure"] == "3 of 3 runs of native fail: wrong results; the repro fails so in a fresh process"
    assert found["How long"] == "600 ms"
    page.click("#answers .link")
    assert page.text("#chosen") == "gelu_1"


def test_an_error_marks_its_operator_and_opens_there(chromium, pages):
    page = chromium.open(pages["error"])
    assert answers(page)["Where"].startswith("cat_0 aten.cat.default")
    assert page.text("#repro .marked").strip() == "return (torch.ops.aten.cat.default([x, y], 1),)"
    page.click("#tab-graphs")
    assert page.text("#chosen") == "cat_0"
    assert "aten.cat.default" in page.text(".fault")
    assert page.eval("graphPanel.nodes.filter((node) => node.heat === 1).map((node) => node.name)") == [f"cat_{k}" for k in range(5)]
    assert page.problems() == []
    page.close()


def test_long_edges_of_small_graphs_are_drawn_and_those_of_large_ones_are_stubs(chromium, pages, big):
    page = chromium.open(pages["error"])
    page.click("#tab-graphs")
    assert page.eval("graphPanel.layout.edges.every((edge) => edge.routed)")
    longest = page.eval("Math.max(...graphPanel.layout.edges.map((edge) => edge.via.length))")
    assert longest > 20
    page.close()
    big.eval("graphPanel.openAll()")
    ends = big.eval("graphPanel.layout.boxes.reduce((sum, box) => sum + box.farIns.length + box.farOuts.length, 0)")
    assert ends == 2 * big.eval("graphPanel.layout.edges.filter((edge) => !edge.routed).length")


def test_a_difference_has_a_map_of_its_elements_and_a_histogram(page):
    page.click("#tab-graphs")
    colours = page.eval("[...document.querySelectorAll('.map .cell')].map((cell) => getComputedStyle(cell).fill)")
    assert len(colours) == 12 and len(set(colours)) == 3
    assert colours[0] == colours[4] and len({colours[0], colours[6], colours[7]}) == 3
    assert page.eval("[...document.querySelectorAll('.histogram span')].map((e) => e.textContent)") == ["equal", "90", "≥ 1e-1", "6", "≥ 1", "4"]
    assert "3 × 4 cells of 2 × 4 elements" in page.text(".map title")


def test_a_step_of_the_flame_graph_zooms_to_its_own_time(page):
    page.click("#tab-stages")
    widths = "[...document.querySelectorAll('.flame .block')].map((block) => block.hidden ? 0 : block.getBoundingClientRect().width)"
    before = page.eval(widths)
    assert len(before) == 4 and before[1] == pytest.approx(3 * before[0], rel=0.05)
    page.eval("document.querySelectorAll('.flame .block')[1].click()")
    zoomed = page.eval(widths)
    assert zoomed[2] == pytest.approx(before[2] * 2, rel=0.05)
    page.eval("[...document.querySelectorAll('.flame-card button')].pop().click()")
    assert page.eval(widths) == before


def test_code_has_numbered_lines_that_are_not_part_of_its_text(page):
    assert page.eval("document.querySelectorAll('#repro .line').length") == len(traces.REPRO.splitlines())
    assert page.eval("getComputedStyle(document.querySelectorAll('#repro .line')[2], '::before').content") == "counter(line)"
    assert page.eval("[...document.querySelectorAll('#repro .keyword')].map((e) => e.textContent)") == ["import", "class", "def", "return"]


def test_kernels_have_their_shortest_times_and_lead_to_their_nodes(page):
    page.click("#tab-kernels")
    rows = page.eval("[...document.querySelectorAll('.kernels tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
    assert [row[0] for row in rows] == ["query_addmm_0", "gelu_1_scaled_1", "gelu_2"]
    assert [row[2] for row in rows] == ["90.0 µs", "30.0 µs", "not measured"]
    assert [row[3] for row in rows] == ["75 %", "25 %", ""]
    page.eval("document.querySelectorAll('.kernels button')[1].click()")
    assert page.text(".kernel-code pre") == "for i in gelu_1_scaled_1"
    page.eval("document.querySelectorAll('.kernel-code .links button')[0].click()")
    assert page.text("#chosen") == "gelu_1"
    assert "Kernel gelu_1_scaled_1, 30.0 µs" in page.text("#main")
    assert page.problems() == []


def test_stages_are_bars_whose_lengths_are_their_times(page):
    page.click("#tab-stages")
    widths = page.eval("[...document.querySelectorAll('.bar')].map((bar) => bar.getBoundingClientRect().width)")
    assert len(widths) == 4
    assert widths[1] / widths[0] == pytest.approx(3, rel=0.02)
    assert "longest step is joint" in page.text("main .soft")


def test_the_graph_opens_at_the_first_mismatch(page):
    page.click("#tab-graphs")
    assert page.text("#chosen") == "gelu_1"
    assert "element 3 is 0.5 and should be 0.4" in page.text(".detail")
    heats = page.eval("graphPanel.nodes.filter((node) => node.heat > 0.5).length")
    parted = page.eval("graphPanel.mismatches.length")
    assert heats == parted > 10


def test_a_click_on_a_box_shows_the_node(page):
    page.click("#tab-graphs")
    place = page.eval(
        "(() => { const { canvas, layout, nodes } = graphPanel; const index = nodes.findIndex((n) => n.name === 'norm2_1');"
        " const box = layout.boxes[layout.boxOfNode[index]]; const area = canvas.element.getBoundingClientRect();"
        " return [area.x + canvas.width / 2 + (box.x - canvas.view.x) * canvas.view.zoom,"
        " area.y + canvas.height / 2 + (box.y - canvas.view.y) * canvas.view.zoom]; })()"
    )
    page.click_at(*place)
    assert page.text("#chosen") == "norm2_1"
    detail = page.text(".detail")
    for expected in ("aten.layer_norm.default", "layers.1.norm2", "[8, 16]", "torch.ops.aten.layer_norm.default(add1_1)"):
        assert expected in detail


def test_search_finds_and_steps_through_matches(page):
    page.key("/")
    assert page.eval("document.activeElement.type") == "search"
    page.write("softmax")
    assert page.text("#found") == "3 of 106 nodes"
    page.key("Enter")
    first = page.text("#chosen")
    page.key("Enter")
    assert (first, page.text("#chosen")) == ("softmax_2", "softmax_0")
    page.key("Escape")
    assert page.text("#found") == "106 nodes"


def test_arrow_keys_follow_edges_and_enter_closes_and_opens_modules(page):
    page.click("#tab-graphs")
    page.eval("graphPanel.canvas.element.focus()")
    page.key("ArrowDown")
    assert page.text("#chosen") == "down_addmm_1"
    page.key("ArrowUp")
    assert page.text("#chosen") == "gelu_1"
    before = page.eval("graphPanel.layout.boxes.length")
    page.key("Enter")
    assert page.text(".detail h2") == "layers.1.mlp"
    assert page.eval("graphPanel.layout.boxes.length") < before
    page.key("Enter")
    assert page.eval("graphPanel.layout.boxOfNode[graphPanel.chosen] === graphPanel.canvas.chosen")


def test_the_page_works_without_a_mouse(page):
    page.key("?")
    assert page.eval("document.getElementById('help').open")
    page.key("Escape")
    assert not page.eval("document.getElementById('help').open")
    page.key("3")
    assert page.focused() == "tab-graphs"
    page.key("ArrowRight")
    assert page.focused() == "tab-kernels"
    page.key("3")
    order = []
    for _ in range(4):
        page.key("Tab")
        order.append(page.eval("document.activeElement.className || document.activeElement.tagName"))
    assert order == ["SELECT", "INPUT", "rows", "CANVAS"]
    unnamed = page.eval(
        "[...document.querySelectorAll('button, input, select, canvas, [tabindex=\"0\"]')].filter((e) =>"
        " !(e.textContent.trim() || e.getAttribute('aria-label'))).length"
    )
    assert unnamed == 0


def test_light_and_dark_follow_the_system_and_the_switch(chromium, pages):
    page = chromium.open(pages["small"], scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.eval(ground)
    page.prefer("light")
    light = page.eval(ground)
    assert light != dark
    page.click("#theme")
    assert page.eval(ground) == dark
    page.key("t")
    assert page.eval(ground) == light


def test_text_has_enough_contrast_in_both(page):
    script = """(() => {
      const linear = (c) => (c /= 255, c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
      const light = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
        return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b); };
      const probe = document.createElement('i'); document.body.append(probe);
      const read = (name) => { probe.style.color = `var(--${name})`; return light(getComputedStyle(probe).color); };
      const ratio = (a, b) => { const [x, y] = [read(a), read(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
      return [['ink', 'ground'], ['ink-soft', 'ground'], ['ink-soft', 'sunken'], ['ink', 'accent-soft'],
        ['accent', 'ground'], ['on-accent', 'accent']].map(([a, b]) => ratio(a, b)); })()"""
    for theme in ("light", "dark"):
        page.eval(f"document.documentElement.dataset.theme = '{theme}'")
        assert min(page.eval(script)) >= 4.5, theme


def test_breaks_stand_below_the_users_line(page):
    page.click("#tab-capture")
    assert page.text(".source .marked").endswith('print("here")')
    assert page.eval("document.querySelector('.marked').nextSibling.textContent").startswith("break in forward: call of print")
    assert "x.size(0) == 8" in page.text("table")


def test_the_search_is_a_curve_and_every_improvement_has_its_difference(page):
    page.click("#tab-minify")
    assert "40 nodes became 3 in 7 queries" in page.text("h2")
    assert page.eval("document.querySelectorAll('.point').length") == 4
    assert page.eval("document.querySelectorAll('.diff .del').length") == 6
    page.click(".list li:nth-child(2) button")
    assert page.eval("document.querySelectorAll('.diff .del').length") == 19
    page.click(".switch button:last-child")
    assert page.text(".curve text:last-of-type") == "7"


def test_files_are_shown_and_opened_from_nodes(page):
    page.click("#tab-graphs")
    page.eval("[...document.querySelectorAll('.links button')].find((b) => b.textContent === 'joint.py').click()")
    assert page.text(".files .card h2") == "aot/forward_0/joint.py"
    assert page.text(".files pre") == "# joint"


def test_two_runs_are_compared(chromium, pages):
    page = chromium.open(pages["two"])
    page.click("#tab-compare")
    text = page.text("main")
    for expected in ("the other", "+1", "aten.gelu.default", "agrees", "not measured"):
        assert expected in text
    assert page.eval("document.querySelectorAll('.pair .bar').length") == 8
    assert page.problems() == []


def test_a_graph_of_3000_nodes_begins_as_an_overview(big):
    assert big.eval("graphPanel.nodes.length") > 3000
    assert big.eval("graphPanel.layout.boxes.length") < 200
    assert big.text("#chosen") == "gelu_40"


@pytest.mark.serial
@pytest.mark.parametrize(
    "script",
    [
        pytest.param("graphPanel.openAll()", id="open every module"),
        pytest.param("graphPanel.closeAll()", id="close every module"),
        pytest.param("graphPanel.search.value = 'gelu'; graphPanel.filter()", id="search"),
        pytest.param("graphPanel.chooseNode(1500 + n)", id="choose a node"),
        pytest.param("graphPanel.nextMismatch(1)", id="go to the next mismatch"),
        pytest.param("graphPanel.canvas.zoomBy(0.8)", id="zoom"),
        pytest.param("graphPanel.canvas.view.zoom = 0.02", id="see the whole graph"),
    ],
)
def test_3000_nodes_answer_within_a_tenth_of_a_second(big, script):
    big.eval("graphPanel.openAll()")
    taken = took(big, script)
    print(f"{taken:.1f} ms")
    assert taken < INTERACTION


def test_boxes_do_not_overlap_and_edges_lead_down(big):
    big.eval("graphPanel.openAll()")
    overlaps = big.eval(
        "graphPanel.layout.rows.flatMap((row) => { const boxes = row.map((n) => graphPanel.layout.boxes[n]).sort((a, b) => a.x - b.x);"
        " return boxes.slice(1).filter((box, i) => box.x - box.width / 2 < boxes[i].x + boxes[i].width / 2); }).length"
    )
    upward = big.eval("graphPanel.layout.edges.filter((e) => graphPanel.layout.boxes[e.from].y >= graphPanel.layout.boxes[e.to].y).length")
    assert (overlaps, upward) == (0, 0)


def test_hostile_names_stay_text(pyrite, chromium, tmp_path):
    hostile = "</script><img src=x onerror=\"document.title='owned'\"><!--"
    graph = traces.GraphWriter()
    graph.add(hostile, op="placeholder")
    graph.add("relu", hostile, hostile, (0,))
    records = [
        traces.run("pyrite", hostile), graph.record(graph=hostile, file=hostile),
        {"event": "finding", "step": hostile, "text": hostile},
        {"event": "artifact", "graph": hostile, "name": "x", "file": hostile, "text": hostile},
        {"event": "repro", "path": hostile, "text": hostile, "signature": hostile, "proven": True},
        *traces.search([4, 2]),
    ]
    traces.write(tmp_path, records)
    pyrite("report", tmp_path)
    page = chromium.open(tmp_path / "report.html")
    for number in range(1, 7):
        page.key(str(number))
    assert page.eval("document.querySelectorAll('img').length") == 0
    assert "owned" not in page.eval("document.title") or hostile in page.eval("document.title")
    assert page.problems() == []


def test_nothing_moves_while_the_page_is_used(page):
    page.eval(
        "window.moved = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.moved += entry.value; })"
        ".observe({ type: 'layout-shift', buffered: true }); 0"
    )
    for number in range(1, 7):
        page.key(str(number))
        page.wait_until_idle()
    assert page.eval("window.moved") < 0.05
