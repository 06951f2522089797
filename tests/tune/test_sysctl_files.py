# SPDX-License-Identifier: MIT
"""The parser of sysctl/*.conf: what it takes, and what it refuses and how it says so."""

import unittest

from hellotune import sysctl_files
from hellotune.sysctl_files import ParseError, canonical_key, parse


def one(text):
    settings = parse(text.encode(), "x.conf")
    assert len(settings) == 1, settings
    return settings[0]


class WhatIsTaken(unittest.TestCase):
    def test_an_assignment_is_a_key_and_a_value(self):
        setting = one("net.core.somaxconn = 65535\n")
        self.assertEqual((setting.key, setting.value), ("net.core.somaxconn", "65535"))
        self.assertFalse(setting.verify_only or setting.optional or setting.explain_only)

    def test_fields_belong_to_the_next_key_only(self):
        first, second = parse(b"#@ side: server\n#@ why: a\n#@   b\n#@     c\na.b=1\na.c=2", "x")
        self.assertEqual(first.fields, {"side": "server", "why": "a b c"})
        self.assertEqual(second.fields, {})

    def test_prose_and_semicolons_and_blank_lines_are_comments(self):
        self.assertEqual(parse(b"# a\n; b\n\n  # c\n##@ why: no field\n", "x"), [])

    def test_a_line_with_hash_and_equals_is_checked_but_never_applied(self):
        self.assertTrue(one("#= net.ipv4.tcp_syncookies = 1").verify_only)

    def test_a_line_with_hash_and_colon_is_only_explained(self):
        setting = one("#@ verdict: leave it\n#: net.ipv4.tcp_fin_timeout\n")
        self.assertTrue(setting.explain_only and setting.verify_only)
        self.assertEqual(setting.fields, {"verdict": "leave it"})

    def test_a_minus_or_a_field_makes_a_key_optional(self):
        self.assertTrue(one("-net.ipv4.tcp_migrate_req = 1").optional)
        self.assertTrue(one("#@ optional: since 5.14\na.b = 1").optional)
        self.assertFalse(one("#@ optional: no\na.b = 1").optional)

    def test_tabs_carriage_returns_and_a_missing_last_newline_make_no_difference(self):
        plain = one("net.ipv4.ip_local_port_range = 10240 65535\n")
        other = one("net.ipv4.ip_local_port_range\t=\t10240\t 65535 \r")
        self.assertEqual(plain, other)
        self.assertEqual(len(parse(b"a.b = 1\r\na.c = 2", "x")), 2)

    def test_slashes_and_dots_change_places_when_a_slash_comes_first(self):
        self.assertEqual(canonical_key("net/core/somaxconn"), "net.core.somaxconn")
        key = canonical_key("net/ipv4/conf/eth0.5/forwarding")
        self.assertEqual(key, "net.ipv4.conf.eth0/5.forwarding")
        self.assertEqual(sysctl_files.key_path(key), "net/ipv4/conf/eth0.5/forwarding")

    def test_the_same_line_twice_is_taken(self):
        self.assertEqual(len(parse(b"a.b = 0\na.b = 0\n", "x")), 2)


class WhatIsRefused(unittest.TestCase):
    def refused(self, text, line, words):
        with self.assertRaises(ParseError) as caught:
            parse(text if isinstance(text, bytes) else text.encode(), "x.conf")
        self.assertEqual((caught.exception.path, caught.exception.line), ("x.conf", line))
        self.assertIn(words, str(caught.exception))

    def test_a_line_that_is_no_assignment(self):
        self.refused("a.b = 1\nnonsense\n", 2, "expected KEY = VALUE")
        self.refused("a.b =\n", 1, "expected KEY = VALUE")

    def test_keys_that_leave_the_tree(self):
        for key in ("../x", "net/../../etc/passwd", "net....etc", "/etc/passwd",
                    "net.", ".net", "somaxconn", "a b.c", "a.b$(id)", "a.\u00e9", "net.//.x",
                    "net/core/", "..", "-"):
            with self.subTest(key=key):
                self.refused(f"{key} = 1", 1, "a key")

    def test_a_comment_behind_a_value(self):
        self.refused("a.b = 9 # nine", 1, "its own line")
        self.refused("a.b = 9 ; nine", 1, "its own line")

    def test_bytes_that_are_no_text(self):
        self.refused(b"a.b = 1\na.c = \xff\n", 2, "UTF-8")
        self.refused(b"a.b = 1\x00\n", 1, "printed")

    def test_unknown_fields_and_fields_of_no_key(self):
        self.refused("#@ colour: red\na.b = 1", 1, "not a field")
        self.refused("a.b = 1\n#@ why: a\n", 2, "belong to no key")
        self.refused("#@   goes on\na.b = 1", 1, "there is none")
        self.refused("#@ why: a\n#@ why: b\na.b = 1", 2, "second field")

    def test_a_key_with_two_values(self):
        self.refused("a.b = 1\na.b = 2\n", 2, "line 1")
        self.refused("a.b = 1\na/b = 2\n", 2, "line 1")

    def test_a_way_to_compare_that_does_not_fit_the_value(self):
        self.refused("#@ compare: max\na.b = 1", 2, "exact min merge")
        self.refused("#@ compare: min\na.b = 1 2", 2, "one number")
        self.refused("#@ compare: merge\na.b = x", 2, "8080-8083")


if __name__ == "__main__":
    unittest.main()
