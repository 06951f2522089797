# SPDX-License-Identifier: MIT
"""report.html: safe and whole as a text, and as Chromium shows it where there is one."""

import base64
import hashlib
import html
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml

import synthetic
from hellobench import report

HOSTILE = "<script>alert(1)</script>\"'onload=x `&\x1b"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--hide-scrollbars", "--allow-file-access-from-files", "--virtual-time-budget=20000")
DARK = "--blink-settings=preferredColorScheme=0"
# Looks at the report in a frame of a phone's width, sorts a table and writes down what it saw.
PROBE = """<!DOCTYPE html><html><body><iframe id="f" src="report.html" width="400" height="800">
</iframe><pre id="saw"></pre><script>
document.getElementById("f").onload = event => {
  const page = event.target.contentDocument, root = page.documentElement;
  const table = page.getElementById("table-rate-main");
  const column = index => [...table.tBodies[0].rows].map(
      row => row.cells[index]?.dataset.n ?? row.cells[index]?.dataset.t ?? null);
  const buttons = table.tHead.querySelectorAll("button");
  const sorted = {};
  buttons[3].click(); sorted.up = column(3);
  buttons[3].click(); sorted.down = column(3);
  buttons[1].click(); sorted.names = column(1);
  document.getElementById("saw").textContent = JSON.stringify({
    scroll: root.scrollWidth, client: root.clientWidth, sorted,
    sort: [...table.tHead.rows[0].cells].map(head => head.ariaSort),
    table: table.scrollWidth, frame: table.parentElement.clientWidth,
    paper: getComputedStyle(page.body).backgroundColor,
    ink: getComputedStyle(page.querySelector("svg.plot [style*='fill: #1b1f24']")).fill,
    plots: page.querySelectorAll("svg.plot").length});
};
</script></body></html>"""


def build(folder, **options):
    synthetic.write(folder, **options)
    report.write(folder, ("html", "svg", "png", "csv", "json", "md"))
    return (pathlib.Path(folder) / "report.html").read_text("utf-8")


@unittest.skipUnless(importlib.util.find_spec("jinja2"), "python3-jinja2 is not there")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.text = build(cls.folder, rename={"go": HOSTILE})
        cls.root = xml.fromstring(cls.text)

    def attributes(self, *names):
        return [value for element in self.root.iter() for name, value in element.items()
                if name.rpartition("}")[2] in names]

    def test_it_loads_nothing_from_anywhere(self):
        links = self.attributes("src", "href", "action", "data", "poster", "srcset")
        self.assertGreater(len(links), 200)
        for link in links:
            self.assertRegex(link, r"^(#|raw/)")
        self.assertFalse([element.tag for element in self.root.iter()
                          if element.tag.endswith(("}link", "}iframe", "}img", "}object"))])
        style = "".join(element.text or "" for element in self.root.iter()
                        if element.tag.endswith("}style"))
        self.assertNotRegex(style, r"url\(|@import")

    def test_every_link_leads_to_a_file_or_a_place_that_is_there(self):
        ids = self.attributes("id")
        self.assertEqual(len(ids), len(set(ids)))
        for link in self.attributes("href"):
            self.assertTrue(link[1:] in ids if link[0] == "#" else (self.folder / link).is_file(),
                            link)

    def test_the_policy_allows_the_one_script_that_is_in_it(self):
        scripts = [element.text for element in self.root.iter() if element.tag.endswith("}script")]
        self.assertEqual(len(scripts), 1)
        self.assertLessEqual(len(scripts[0]), 2048)
        digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
        self.assertIn(f"script-src 'sha256-{digest}'", self.text)

    def test_a_hostile_name_stays_text(self):
        self.assertNotIn("<script>alert", self.text)
        self.assertFalse(self.attributes("onload"))
        self.assertNotIn("\x1b", self.text)
        self.assertIn(HOSTILE.replace("\x1b", "\ufffd"),
                      ["".join(element.itertext()) for element in self.root.iter()
                       if element.tag.endswith("}th")])

    def test_a_figure_links_to_the_raw_output_of_its_run(self):
        links = [element for element in self.root.iter() if element.tag.endswith("}a")
                 and element.get("href", "").startswith("raw/")]
        shown = {link.get("href"): link.text for link in links if link.text.startswith("90,")}
        self.assertTrue(all(href.endswith("-main.out") for href in shown))

    def test_an_invalid_run_has_a_code_where_its_rate_would_be(self):
        self.assertRegex(self.text, r'<td class="right bad"[^>]*><a href="raw/02-express-main.out">'
                                    r"ERRORS</a></td>")

    def test_bars_behind_the_figures_are_as_long_as_they_should_be(self):
        shares = [float(share) for share in re.findall(r"--share:([\d.]+)%", self.text)]
        medians = [float(value) for value in
                   re.findall(r'--share:[\d.]+%" data-n="([\d.]+)"', self.text)]
        self.assertEqual(len(shares), 23)
        for share, median in zip(shares, medians):
            self.assertAlmostEqual(share, 100 * median / max(medians), delta=0.01)

    def test_all_that_markdown_says_is_there(self):
        said = html.unescape(re.sub(r"<[^>]+>", "", self.text))
        for words in ("What differs. The article:", "Why not double?", "closed loop",
                      "not installed: php's extension swoole is not there",
                      "scripts/bench install swoole", "scripts/bench run article-runs"):
            self.assertIn(words, said)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "python3-matplotlib is not there")
    def test_every_plot_is_in_the_page(self):
        plots = [element for element in self.root.iter() if element.get("class") == "plot"]
        self.assertEqual(len(plots), 4)


@unittest.skipUnless(CHROMIUM, "there is no chromium in PATH")
@unittest.skipUnless(importlib.util.find_spec("jinja2"), "python3-jinja2 is not there")
@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "python3-matplotlib is not there")
class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        build(cls.folder)
        (cls.folder / "probe.html").write_text(PROBE, "utf-8")
        cls.saw, cls.saw_dark = cls.probe(), cls.probe(DARK)

    @classmethod
    def probe(cls, *options):
        dom = cls.run_browser("probe.html", "--dump-dom", *options)
        return json.loads(html.unescape(re.search(r'<pre id="saw">(.+?)</pre>', dom).group(1)))

    @classmethod
    def run_browser(cls, page, *options):
        with tempfile.TemporaryDirectory() as profile:
            done = subprocess.run(
                [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *options,
                 (cls.folder / page).as_uri()], capture_output=True, timeout=120, check=True)
        return done.stdout.decode("utf-8", "replace")

    @classmethod
    def pixels(cls, name, *options):
        """(distinct colours, mean brightness 0..1) of a screenshot."""
        from matplotlib import image
        path = cls.folder / f"{name}.png"
        cls.run_browser("report.html", f"--screenshot={path}", "--window-size=1200,1600", *options)
        data = image.imread(path)[..., :3]
        colours = {tuple(pixel) for pixel in data[::7, ::7].reshape(-1, 3).tolist()}
        return len(colours), float(data.mean())

    def test_in_light_mode_it_is_dark_text_on_light_paper(self):
        colours, brightness = self.pixels("light")
        self.assertGreater(colours, 30)
        self.assertGreater(brightness, 0.8)

    def test_in_dark_mode_it_is_light_text_on_dark_paper(self):
        colours, brightness = self.pixels("dark", DARK)
        self.assertGreater(colours, 30)
        self.assertLess(brightness, 0.3)

    def test_in_dark_mode_the_plots_have_light_text_too(self):
        self.assertEqual(self.saw_dark["ink"], "rgb(232, 234, 237)")
        self.assertEqual(self.saw_dark["paper"], "rgb(21, 24, 28)")

    def test_on_a_phone_tables_scroll_and_the_page_does_not(self):
        self.assertLessEqual(self.saw["scroll"], self.saw["client"])
        self.assertLessEqual(self.saw["client"], 400)
        self.assertGreater(self.saw["table"], self.saw["frame"])

    def test_a_click_sorts_and_the_unknown_stays_last(self):
        for way, reverse in (("up", False), ("down", True)):
            found = self.saw["sorted"][way]
            known = [float(value) for value in found if value is not None]
            self.assertEqual(len(known), 23)
            self.assertEqual(known, sorted(known, reverse=reverse))
            self.assertEqual(found[-2:], [None, None])

    def test_a_click_on_names_sorts_them_as_texts(self):
        self.assertEqual(self.saw["sorted"]["names"][0], "asp.net core")
        self.assertEqual(self.saw["sort"][1], "ascending")

    def test_every_plot_is_shown(self):
        self.assertEqual(self.saw["plots"], 4)


if __name__ == "__main__":
    unittest.main()
