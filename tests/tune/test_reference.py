# SPDX-License-Identifier: MIT
"""sysctl/*.conf and the README made of them: complete, current, and the published list verbatim."""

import re
import unittest

from hellotune import profiles, reference
from hellotune.lab import catalogue

# Of the article, character by character.
PUBLISHED = """\
fs.file-max=2097152
net.ipv4.tcp_synack_retries=2
net.ipv4.ip_local_port_range = 2000 65535
net.ipv4.tcp_rfc1337=1
net.core.somaxconn=65535
net.core.netdev_max_backlog=65536
net.ipv4.tcp_slow_start_after_idle=0
net.ipv4.tcp_slow_start_after_idle=0
net.ipv4.tcp_syncookies = 1
net.ipv4.tcp_tw_reuse = 1
net.ipv4.tcp_timestamps = 1
net.ipv4.tcp_fin_timeout = 5
vm.swappiness = 0
"""
SERVER_PORTS = {3000, 5000, 8000, *range(8080, 8084), 9090}
VERDICTS = ("useful", "default", "no effect", "harmful")


def assignments(path):
    return "".join(line + "\n" for line in path.read_text().splitlines()
                   if line and not line.startswith("#"))


class Reference(unittest.TestCase):
    def setUp(self):
        self.entries = reference.entries()

    def test_the_readme_is_what_the_files_say(self):
        self.assertEqual(reference.readme().read_text(encoding="utf-8"), reference.text(),
                         "PYTHONPATH=scripts /usr/bin/python3 -m hellotune.reference")

    def test_every_key_is_described_once_and_completely(self):
        for entry in self.entries:
            described = [s for _, s in entry.settings if "scope" in s.fields]
            with self.subTest(key=entry.key):
                self.assertEqual(len(described), 1)
                fields = described[0].fields
                for name in ("side", "scope", "default", "published", "effect", "what", "why",
                             "check", "risk", "counter", "doc"):
                    self.assertTrue(fields.get(name), name)
                self.assertIn(fields["side"], ("server", "client", "both"))
                self.assertIn(fields["scope"], ("netns", "global"))

    def test_what_a_key_says_of_the_published_value_is_true(self):
        for entry in self.entries:
            said = entry.fields["published"].replace(" (twice)", "")
            self.assertEqual(said, entry.published.split(" and again ")[0], entry.key)

    def test_every_experiment_named_exists_and_every_one_is_named(self):
        named = {name for entry in self.entries for name in entry.labs}
        self.assertEqual(named, set(catalogue.experiments()))

    def test_links_in_the_table_lead_to_sections(self):
        text = reference.text()
        headings = {reference.anchor(key) for key in re.findall(r"(?m)^### (.*)$", text)}
        self.assertEqual(set(re.findall(r"\]\(#([^)]*)\)", text)), headings)

    def test_the_prose_names_experiments_that_exist(self):
        prose = reference.PROSE.read_text(encoding="utf-8")
        named = set(re.findall(r"experiment `([^`]+)`", prose))
        self.assertEqual(named - set(catalogue.experiments()), set())
        self.assertGreater(len(named), 5)


class Files(unittest.TestCase):
    def test_the_published_list_is_verbatim(self):
        self.assertEqual(assignments(profiles.known()["published"]), PUBLISHED)

    def test_every_published_line_has_a_verdict(self):
        for setting in profiles.load("published"):
            self.assertTrue(setting.fields["verdict"].startswith(VERDICTS), setting.key)

    def test_verify_sets_nothing(self):
        self.assertEqual(assignments(profiles.known()["verify"]), "")
        self.assertTrue(all(setting.verify_only for setting in profiles.load("verify")))

    def test_we_set_four_keys_each_of_a_namespace(self):
        ours = profiles.load("server") + profiles.load("client")
        self.assertEqual(len({setting.key for setting in ours}), 4)
        self.assertEqual({setting.fields["scope"] for setting in ours}, {"netns"})

    def test_our_port_range_keeps_clear_of_servers_and_differs_in_parity(self):
        setting, = (s for s in profiles.load("client") if s.key.endswith("ip_local_port_range"))
        low, high = map(int, setting.value.split())
        self.assertGreaterEqual(low, 1024)
        self.assertNotEqual(low % 2, high % 2)
        self.assertEqual(SERVER_PORTS & set(range(low, high + 1)), set())

    def test_no_file_sets_a_key_that_is_gone(self):
        for path in profiles.known().values():
            self.assertNotIn("tw_recycle", path.read_text())


if __name__ == "__main__":
    unittest.main()
