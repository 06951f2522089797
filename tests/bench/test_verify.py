# SPDX-License-Identifier: MIT
"""verify: which answers disqualify and what is said of them, and which are traits.

Each test's server is a function that is given every request (as bytes) with its connection; so it
can answer, lie, cut off or say nothing.
"""

import contextlib
import email.utils
import socket
import threading
import time
import unittest
import unittest.mock

from hellobench import verify

BODY = "Hello World!"


def answer(body=BODY, status="200 OK", length=None, date=True, extra=""):
    length = len(body) if length is None else length
    stamp = f"Date: {email.utils.formatdate(usegmt=True)}\r\n" if date else ""
    size = f"Content-Length: {length}\r\n" if length >= 0 else ""
    return f"HTTP/1.1 {status}\r\n{stamp}{size}{extra}\r\n{body}".encode()


class Server:
    """Calls handle(connection, request) -> whether the connection stays, for every request."""

    def __init__(self, handle, listening=True):
        self.handle = handle
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        if listening:
            self.listen()

    def listen(self):
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        received = b""
        with connection:
            try:
                while True:
                    while b"\r\n\r\n" not in received:
                        data = connection.recv(65536)
                        if not data:
                            return
                        received += data
                    request, received = received.split(b"\r\n\r\n", 1)
                    if not self.handle(connection, request):
                        return
            except OSError:
                return

    def close(self):
        with contextlib.suppress(OSError):  # It may not be listening.
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def stays_open(request):
    return b"HTTP/1.1" in request and b"Connection: close" not in request


def proper(connection, request):
    """As a good server does it, with keep-alive for HTTP/1.0 as well."""
    keep_10 = b"Keep-Alive" in request
    extra = "" if stays_open(request) else "Connection: close\r\n"
    if keep_10:
        extra = "Connection: keep-alive\r\n"
    data = answer(extra=extra)
    connection.sendall(data[:-len(BODY)] if request.startswith(b"HEAD") else data)
    return stays_open(request) or keep_10


def always(data, stay=stays_open):
    """Answers with `data`, or what it returns if the Date shall move on."""
    def handle(connection, request):
        connection.sendall(data() if callable(data) else data)
        return stay(request)
    return handle


class VerifyCase(unittest.TestCase):
    def serve(self, handle, **options):
        server = Server(handle, **options)
        self.addCleanup(server.close)
        return server

    def verify(self, handle, full=False):
        return verify.verify("127.0.0.1", self.serve(handle).port, BODY, full)

    def disqualified(self, handle, *parts):
        result = self.verify(handle)
        self.assertFalse(result.ok)
        texts = "\n".join(problem.text for problem in result.problems)
        self.assertEqual({problem.code for problem in result.problems}, {"VERIFY_FAILED"})
        for part in parts:
            self.assertIn(part, texts)


class Disqualified(VerifyCase):
    def test_a_wrong_body_is_quoted(self):
        self.disqualified(always(answer("Hello Wurld!")), "b'Hello Wurld!'", "b'Hello World!'")

    def test_a_longer_body_is_told_with_its_size(self):
        self.disqualified(always(answer(BODY + "\n")), "body of 13 bytes", "instead of 12 bytes")

    def test_a_503_is_told_though_its_body_is_right(self):
        self.disqualified(always(answer(status="503 Busy")), "status 503 instead of 200")

    def test_no_content_length_is_told(self):
        self.disqualified(always(answer(length=-1), stay=lambda _: False),
                          "neither Content-Length nor chunked")

    def test_a_body_shorter_than_its_length_is_told(self):
        self.disqualified(always(answer(length=50), stay=lambda _: False),
                          "the connection ended after 12 bytes")

    def test_a_body_longer_than_its_length_is_told(self):
        self.disqualified(always(answer(BODY + "and more", length=12)), "b'and more")

    def test_a_close_without_an_answer_is_told(self):
        self.disqualified(always(b"", stay=lambda _: False), "the connection ended after 0 bytes")

    def test_what_is_not_http_is_quoted(self):
        self.disqualified(always(b"SSH-2.0-x\r\n\r\n"), "no HTTP/1 status line but 'SSH-2.0-x'")

    def test_silence_is_told_with_its_limit(self):
        with unittest.mock.patch.object(verify, "ANSWER_LIMIT_S", 0.2):
            self.disqualified(always(b""), "GET of HTTP/1.1", "nothing more within")

    def test_silence_at_the_second_request_is_told(self):
        def only_the_first(connection, request, seen=set()):
            if connection not in seen:
                connection.sendall(answer())
            seen.add(connection)
            return stays_open(request)
        with unittest.mock.patch.object(verify, "ANSWER_LIMIT_S", 0.2):
            self.disqualified(only_the_first, "the second request of the connection: nothing more")

    def test_a_wrong_body_to_http_1_0_alone_is_told(self):
        def handle(connection, request):
            connection.sendall(answer("short" if b"HTTP/1.0" in request else BODY))
            return stays_open(request)
        self.disqualified(handle, "GET of HTTP/1.0: body of 5 bytes")

    def test_a_refused_connection_is_told(self):
        result = verify.verify("127.0.0.1", self.serve(proper, listening=False).port, BODY)
        self.assertIn("refused", result.problems[0].text)


class Traits(VerifyCase):
    def test_a_good_server_passes_with_the_size_of_its_answers(self):
        result = self.verify(proper)
        self.assertEqual((result.ok, result.problems), (True, []))
        self.assertEqual(result.response_bytes_keepalive, len(answer()))
        self.assertEqual(result.response_bytes_close,
                         len(answer(extra="Connection: close\r\n")))
        self.assertTrue(result.head.startswith("HTTP/1.1 200 OK\r\nDate: "))

    def test_a_good_server_has_all_good_traits(self):
        traits = self.verify(proper, full=True).traits
        expected = {"framing": "length", "keepalive_11": True, "honours_close": True,
                    "http10_closes": True, "http10_keepalive": True, "head_without_body": True,
                    "any_path": True, "pipelined": 16, "split_requests": True, "header_8k": True,
                    "date": "fresh", "ipv4": True, "ipv6": False}
        self.assertEqual({key: traits[key] for key in expected}, expected)

    def test_chunked_is_read_and_is_a_trait(self):
        data = answer("5\r\nHello\r\n7\r\n World!\r\n0\r\n\r\n", length=-1,
                      extra="Transfer-Encoding: chunked\r\n")
        result = self.verify(always(data))
        self.assertEqual((result.ok, result.traits["framing"]), (True, "chunked"))
        self.assertEqual(result.response_bytes_keepalive, len(data))

    def test_no_keep_alive_is_a_trait_whether_announced_or_not(self):
        for extra in ("", "Connection: close\r\n"):
            result = self.verify(always(lambda extra=extra: answer(extra=extra),
                                        stay=lambda _: False), full=True)
            self.assertTrue(result.ok)
            self.assertIs(result.traits["keepalive_11"], False)
            self.assertIs(result.traits["http10_keepalive"], False)

    def test_an_ignored_connection_close_is_a_trait(self):
        result = self.verify(always(answer, stay=lambda _: True), full=True)
        self.assertTrue(result.ok)
        self.assertIs(result.traits["honours_close"], False)
        self.assertIs(result.traits["http10_closes"], False)

    def test_a_head_with_a_body_is_a_trait(self):
        self.assertIs(self.verify(always(answer), full=True).traits["head_without_body"], False)

    def test_a_refused_head_is_a_trait_with_its_status(self):
        def refuses(connection, request):
            connection.sendall(answer("", "405 No") if request.startswith(b"HEAD") else answer())
            return stays_open(request)
        self.assertEqual(self.verify(refuses, full=True).traits["head_without_body"], "status 405")

    def test_a_date_is_judged(self):
        for date, verdict in (("", "missing"), ("Date: yesterday\r\n", "invalid"),
                              ("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "wrong")):
            result = self.verify(always(answer(date=False, extra=date)), full=True)
            self.assertEqual((result.ok, result.traits["date"]), (True, verdict))

    def test_a_date_that_stands_still_is_told(self):
        target = verify.Target("127.0.0.1", self.serve(always(answer())).port, BODY)
        with unittest.mock.patch.object(verify, "DATE_LIMIT_S", 1.5):
            self.assertIn(verify.probe_date(target), ("stands still", "wrong"))

    def test_a_server_that_answers_the_first_of_many_requests_at_once_is_told(self):
        def deaf(connection, request):
            connection.sendall(answer())
            connection.settimeout(0.05)
            try:
                connection.recv(65536)
            except TimeoutError:
                connection.settimeout(None)
            return stays_open(request)
        with unittest.mock.patch("hellobench.verify.ANSWER_LIMIT_S", 0.2):
            target = verify.Target("127.0.0.1", self.serve(Drops(deaf)).port, BODY)
            self.assertEqual(verify.probe_pipelined(target), 1)

    def test_a_server_that_takes_each_piece_for_a_request_is_told(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)

        def answer_each_piece():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1)
                    connection.sendall(answer(status="400 Bad", body="no"))
        threading.Thread(target=answer_each_piece, daemon=True).start()
        target = verify.Target("127.0.0.1", server.getsockname()[1], BODY)
        self.assertIs(verify.outcome(verify.probe_split, target), False)


class Drops:
    """Only the first request of a connection is answered; all that came with it is dropped."""

    def __init__(self, handle):
        self.handle, self.seen = handle, set()

    def __call__(self, connection, request):
        if connection in self.seen:
            return False
        self.seen.add(connection)
        return self.handle(connection, request)


class Ready(VerifyCase):
    def test_a_slow_start_is_waited_for_and_its_time_returned(self):
        server = self.serve(proper, listening=False)
        threading.Timer(0.3, server.listen).start()
        seconds = verify.wait_ready("127.0.0.1", server.port, BODY, 10, lambda: True)
        self.assertGreaterEqual(seconds, 0.29)
        self.assertLess(seconds, 5)

    def test_errors_before_the_good_answers_are_waited_out(self):
        bad_until = time.monotonic() + 0.3

        def warming(connection, request):
            if time.monotonic() < bad_until:
                connection.sendall(answer(status="503 Starting"))
                return False
            return proper(connection, request)
        seconds = verify.wait_ready("127.0.0.1", self.serve(warming).port, BODY, 10, lambda: True)
        self.assertGreaterEqual(seconds, 0.25)

    def test_one_good_answer_is_not_enough(self):
        answered = []

        def every_third_is_bad(connection, request):
            answered.append(request)
            good = len(answered) % 3 or len(answered) > 30
            connection.sendall(answer(status="200 OK" if good else "500 No"))
            return False
        verify.wait_ready("127.0.0.1", self.serve(every_third_is_bad).port, BODY, 10, lambda: True)
        self.assertGreater(len(answered), 30)

    def test_never_ready_is_told_with_what_was_seen(self):
        server = self.serve(always(answer(status="503 Busy")))
        with self.assertRaises(verify.NotReady) as caught:
            verify.wait_ready("127.0.0.1", server.port, BODY, 0.3, lambda: True)
        self.assertEqual(caught.exception.problem.code, "NOT_READY")
        self.assertIn("within 0.3 s (status 503", caught.exception.problem.text)

    def test_a_server_that_ended_is_told_at_once(self):
        server = self.serve(proper, listening=False)
        started = time.monotonic()
        with self.assertRaises(verify.NotReady) as caught:
            verify.wait_ready("127.0.0.1", server.port, BODY, 60, lambda: False)
        self.assertEqual(caught.exception.problem.code, "START_FAILED")
        self.assertLess(time.monotonic() - started, 5)

    def test_a_server_that_never_answers_does_not_stretch_the_limit(self):
        server = self.serve(always(b""))
        started = time.monotonic()
        with self.assertRaises(verify.NotReady):
            verify.wait_ready("127.0.0.1", server.port, BODY, 0.3, lambda: True)
        self.assertLess(time.monotonic() - started, 2)


if __name__ == "__main__":
    unittest.main()
