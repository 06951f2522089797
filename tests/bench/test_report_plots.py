# SPDX-License-Identifier: MIT
"""The plots: what has a mark, what is text, whether lengths are right, and the same bytes twice."""

import importlib.util
import json
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree as xml

import synthetic
from hellobench import report

SVG = "{http://www.w3.org/2000/svg}"
EXPECTED = {
    "runs": {"dots-main", "ratios-main", "cpu-main", "latency-main"},
    "ladder": {f"{kind}-{step}" for kind in ("dots", "ratios")
               for step in ("n10-c1", "n100-c10", "n1000-c20", "n5000-c200")}
              | {"cpu-n5000-c200", "latency-n5000-c200", "ladder"},
    "startup": {"dots-start", "ratios-start"}}


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "python3-matplotlib is not there")
class Plots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = synthetic.write(scratch.name, rename={"go": "<b>&\x1b[2J $x_1$"})
        report.write(cls.folder, ("svg", "png", "json"))
        cls.svg = {path.stem: path.read_text("utf-8")
                   for path in (cls.folder / "plots").glob("*.svg")}
        cls.results = json.loads((cls.folder / "results.json").read_text("utf-8"))

    def words(self, name):
        return [text.text for text in xml.fromstring(self.svg[name]).iter(SVG + "text")]

    def medians(self, metric):
        return {one["entrant"]: one["median"] for one in self.results["summary"]
                if one["metric"] == metric}

    def test_each_kind_of_profile_has_its_plots(self):
        self.assertEqual(set(self.svg), EXPECTED["runs"])
        for shape in ("ladder", "startup"):
            with tempfile.TemporaryDirectory() as scratch:
                synthetic.write(scratch, shape)
                report.write(scratch, ("svg",))
                names = {path.stem for path in pathlib.Path(scratch, "plots").iterdir()}
            self.assertEqual(names, EXPECTED[shape])

    def test_rates_of_different_tools_make_no_line(self):
        def change(data):
            data["profile"]["steps"][1]["argv"][0] = "hey"
        with tempfile.TemporaryDirectory() as scratch:
            synthetic.edit(synthetic.write(scratch, "ours"), change)
            report.write(scratch, ("svg",))
            self.assertFalse(pathlib.Path(scratch, "plots", "ladder.svg").exists())

    def test_each_has_a_png_of_a_size_that_can_be_read(self):
        for name in self.svg:
            data = (self.folder / "plots" / f"{name}.png").read_bytes()
            self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
            self.assertGreater(int.from_bytes(data[16:20], "big"), 1200)

    def test_the_same_results_give_the_same_bytes(self):
        report.write(self.folder, ("svg",))
        for name, text in self.svg.items():
            self.assertEqual((self.folder / "plots" / f"{name}.svg").read_text("utf-8"), text)

    def test_nothing_is_loaded_and_no_date_is_told(self):
        for text in self.svg.values():
            links = re.findall(r'href="([^"]*)"|url\(([^)]*)\)', text)
            self.assertTrue(all((one or other).startswith("#") for one, other in links))
            self.assertNotIn("dc:date", text)

    def test_a_hostile_name_stays_text(self):
        self.assertIn("<b>&\ufffd[2J $x_1$", self.words("dots-main"))

    def test_all_25_servers_are_named_and_their_figures_printed(self):
        words = self.words("dots-main")
        for _, title, _, _ in synthetic.ENTRANTS:
            self.assertTrue(title in words or title == "Go net/http", title)
        self.assertIn(f"{self.medians('rps')['flask']:,.0f}", words)

    def test_a_server_without_a_figure_has_its_reason_and_no_mark(self):
        words = self.words("dots-main")
        self.assertIn("not installed", words)
        self.assertIn("no valid run: NOT_READY", words)
        self.assertNotIn("Iris", self.words("cpu-main"))

    def test_a_client_bound_figure_is_a_lower_bound(self):
        self.assertTrue(any(word.startswith("\u2265 9") for word in self.words("dots-main")))
        self.assertTrue(any(word.startswith("\u2264 0.9") for word in self.words("ratios-main")))

    def test_the_scale_of_every_run_begins_at_zero(self):
        self.assertIn("0", self.words("dots-main"))

    def test_bars_are_as_long_as_their_figures(self):
        widths = self.bars("server")
        known = sorted(self.medians("server_us_per_req").values())
        usual = [width / value for width, value in zip(widths, known)][:-4]
        self.assertLess(max(usual) / min(usual), 1.005)

    def test_bars_that_are_cut_end_together_and_carry_a_sign(self):
        widths = self.bars("server")
        cut = sum(word == "//" for word in self.words("cpu-main"))
        self.assertGreater(cut, 0)
        for width in widths[-cut + 1:]:
            self.assertAlmostEqual(width, widths[-1], places=2)

    def bars(self, side):
        """The widths of the bars, by row."""
        found = {}
        for group in xml.fromstring(self.svg["cpu-main"]).iter(SVG + "g"):
            name = re.fullmatch(side + r"-(\d+)", group.get("id", ""))
            if name:
                path = group.find(SVG + "path").get("d")
                across = [float(x) for x in re.findall(r"[ML] ([\d.]+)", path)]
                found[int(name.group(1))] = max(across) - min(across)
        return [found[row] for row in sorted(found)]


if __name__ == "__main__":
    unittest.main()
