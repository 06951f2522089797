// SPDX-License-Identifier: MIT
//
// Tests of response.h.

#include "response.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "../support/case_file.h"
#include "support/all_answers.h"
#include "support/allocation_counter.h"
#include "support/image_reader.h"

namespace hello::test {
namespace {

constexpr std::int64_t kExampleDate = 784111777;  // of RFC 9110 section 5.6.7
constexpr std::string_view kExampleText = "Sun, 06 Nov 1994 08:49:37 GMT";

ResponseImages example_images() {
    ResponseImages images("Hello World!", "hello-uring");
    images.refresh(kExampleDate);
    return images;
}

std::string image_text(const ResponseImages& images,
                       Status status,
                       Persistence persistence = Persistence::Implied,
                       Content content = Content::Full) {
    return std::string(images.image({status, persistence, content}));
}

/// The image without the value of Date.
std::string without_date(std::string_view image) {
    std::string text(image);
    const std::size_t at = text.find("\r\nDate: ");
    return at == std::string::npos ? text : text.replace(at + 8, kExampleText.size(), "");
}

CaseResponse expected_response(const Answer& answer) {
    static constexpr std::array<int, kStatusCount> kCodes{100, 200, 400, 405, 408,
                                                          414, 431, 501, 505};
    static constexpr std::array<ConnectionField, kPersistenceCount> kFields{
        ConnectionField::Absent, ConnectionField::KeepAlive, ConnectionField::Close};
    CaseResponse response;
    response.status = kCodes.at(static_cast<std::size_t>(answer.status));
    if (answer.status != Status::Continue) {
        response.connection = kFields.at(static_cast<std::size_t>(answer.persistence));
        response.head_only = answer.content == Content::HeadOnly;
    }
    return response;
}

}  // namespace

TEST_CASE("ResponseImages writes the usual answer octet by octet", "[response]") {
    CHECK(image_text(example_images(), Status::Ok) ==
          "HTTP/1.1 200 OK\r\n"
          "Server: hello-uring\r\n"
          "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
          "Content-Type: text/plain\r\n"
          "Content-Length: 12\r\n"
          "\r\n"
          "Hello World!");
}

TEST_CASE("ResponseImages says close where the connection ends", "[response]") {
    CHECK(image_text(example_images(), Status::Ok, Persistence::Close) ==
          "HTTP/1.1 200 OK\r\n"
          "Server: hello-uring\r\n"
          "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
          "Content-Type: text/plain\r\n"
          "Content-Length: 12\r\n"
          "Connection: close\r\n"
          "\r\n"
          "Hello World!");
}

TEST_CASE("ResponseImages leaves out the content for HEAD, not its length", "[response]") {
    CHECK(image_text(example_images(), Status::Ok, Persistence::KeepAlive, Content::HeadOnly) ==
          "HTTP/1.1 200 OK\r\n"
          "Server: hello-uring\r\n"
          "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
          "Content-Type: text/plain\r\n"
          "Content-Length: 12\r\n"
          "Connection: keep-alive\r\n"
          "\r\n");
}

TEST_CASE("ResponseImages writes an interim answer without fields", "[response]") {
    for (const Answer& answer : all_answers()) {
        if (answer.status == Status::Continue) {
            CHECK(example_images().image(answer) == "HTTP/1.1 100 Continue\r\n\r\n");
        }
    }
}

TEST_CASE("ResponseImages names the allowed methods in 405", "[response]") {
    const Image image =
        read_image(image_text(example_images(), Status::MethodNotAllowed, Persistence::Close));
    CHECK(image.reason == "Method Not Allowed");
    const std::string allow = image.field("Allow").value_or("");
    CHECK(allow.find("GET") != std::string::npos);
    CHECK(allow.find("TRACE") == std::string::npos);
    CHECK(allow.find("CONNECT") == std::string::npos);
}

TEST_CASE("ResponseImages has the standard reason phrases", "[response]") {
    const ResponseImages images = example_images();
    const auto reason = [&](Status status) {
        return read_image(image_text(images, status)).reason;
    };
    CHECK(reason(Status::BadRequest) == "Bad Request");
    CHECK(reason(Status::RequestTimeout) == "Request Timeout");
    CHECK(reason(Status::UriTooLong) == "URI Too Long");
    CHECK(reason(Status::HeaderFieldsTooLarge) == "Request Header Fields Too Large");
    CHECK(reason(Status::NotImplemented) == "Not Implemented");
    CHECK(reason(Status::HttpVersionNotSupported) == "HTTP Version Not Supported");
}

TEST_CASE("ResponseImages has a well-formed image for every answer", "[response]") {
    const ResponseImages images = example_images();
    for (const Answer& answer : all_answers()) {
        CHECK(describe(read_image(images.image(answer))) == expected_response(answer));
    }
}

TEST_CASE("ResponseImages has a different image for every final answer", "[response]") {
    const ResponseImages images = example_images();
    std::set<std::string_view> seen;
    for (const Answer& answer : all_answers()) {
        seen.insert(images.image(answer));
    }
    const std::size_t interim = kPersistenceCount * kContentCount;  // are all the same
    CHECK(seen.size() == kAnswerCount - interim + 1);
}

TEST_CASE("ResponseImages gives HEAD the same fields as GET", "[response]") {
    const ResponseImages images = example_images();
    for (const Answer& answer : all_answers()) {
        const Image full =
            read_image(images.image({answer.status, answer.persistence, Content::Full}));
        const Image head =
            read_image(images.image({answer.status, answer.persistence, Content::HeadOnly}));
        CHECK(full.fields == head.fields);
        CHECK(head.content.empty());
    }
}

TEST_CASE("ResponseImages patches the Date and nothing else", "[response]") {
    ResponseImages images = example_images();
    std::vector<std::string> before;
    std::vector<const char*> places;
    for (const Answer& answer : all_answers()) {
        before.emplace_back(images.image(answer));
        places.push_back(images.image(answer).data());
    }
    images.refresh(kExampleDate + 1);
    for (std::size_t index = 0; const Answer& answer : all_answers()) {
        const std::string_view image = images.image(answer);
        CHECK(image.data() == places[index]);
        CHECK(without_date(image) == without_date(before[index]));
        if (answer.status != Status::Continue) {
            CHECK(read_image(image).field("Date") == "Sun, 06 Nov 1994 08:49:38 GMT");
        }
        ++index;
    }
}

TEST_CASE("ResponseImages has a valid Date before the first refresh", "[response]") {
    const ResponseImages images("x", "y");
    CHECK(read_image(image_text(images, Status::Ok)).field("Date") ==
          "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST_CASE("ResponseImages can go back in time", "[response]") {
    // The clock of the machine may be set back; the Date follows it.
    ResponseImages images = example_images();
    images.refresh(kExampleDate + 100);
    images.refresh(kExampleDate);
    CHECK(read_image(image_text(images, Status::Ok)).field("Date") == kExampleText);
}

TEST_CASE("ResponseImages allocates nothing when it refreshes", "[response]") {
    ResponseImages images = example_images();
    const std::size_t before = AllocationCounter::calls();
    images.refresh(kExampleDate + 1);
    const std::size_t calls = AllocationCounter::calls() - before;
    CHECK(calls == 0);
}

TEST_CASE("ResponseImages leaves out an empty Server", "[response]") {
    const ResponseImages images("Hello World!", "");
    for (const Answer& answer : all_answers()) {
        CHECK(images.image(answer).find("Server") == std::string_view::npos);
    }
    CHECK(image_text(images, Status::Ok).starts_with("HTTP/1.1 200 OK\r\nDate: "));
}

TEST_CASE("ResponseImages takes an empty body", "[response]") {
    const ResponseImages images("", "hello-uring");
    const Image image = read_image(image_text(images, Status::Ok));
    CHECK(image.field("Content-Length") == "0");
    CHECK(image.content.empty());
}

TEST_CASE("ResponseImages takes a body of 64 KiB", "[response]") {
    const std::string body(std::size_t{64} * 1024, 'b');
    const ResponseImages images(body, "hello-uring");
    const Image image = read_image(image_text(images, Status::Ok, Persistence::Close));
    CHECK(image.field("Content-Length") == "65536");
    CHECK(image.content == body);
    CHECK(read_image(image_text(images, Status::BadRequest)).content == "Bad Request\n");
}

TEST_CASE("ResponseImages takes a body with any octet", "[response]") {
    using namespace std::string_view_literals;
    const ResponseImages images("\r\n\r\n\0\xff"sv, "hello-uring");
    CHECK(read_image(image_text(images, Status::Ok)).content == "\r\n\r\n\0\xff"sv);
}

}  // namespace hello::test
