// SPDX-License-Identifier: MIT
//
// Answer: which of the ready-made responses a request gets. AnswerQueue: the answers that a
// connection owes, first in first out. A pipelined batch of equal requests is one run, so what
// is owed to a client costs a few octets however many requests it sent (RFC 9112 section 9.3.2:
// responses go out in the order of the requests).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hello {

enum class Status : std::uint8_t {
    Continue,                 ///< 100
    Ok,                       ///< 200
    BadRequest,               ///< 400
    MethodNotAllowed,         ///< 405
    RequestTimeout,           ///< 408
    UriTooLong,               ///< 414
    HeaderFieldsTooLarge,     ///< 431
    NotImplemented,           ///< 501
    HttpVersionNotSupported,  ///< 505
};
inline constexpr std::size_t kStatusCount = 9;

/// What the Connection field of the response says (RFC 9112 section 9.6).
enum class Persistence : std::uint8_t {
    Implied,    ///< no Connection field: HTTP/1.1 stays open by default
    KeepAlive,  ///< "keep-alive", for an HTTP/1.0 client that asked
    Close,      ///< "close": nothing follows on this connection
};
inline constexpr std::size_t kPersistenceCount = 3;

/// HEAD gets the same fields and no content (RFC 9110 section 9.3.2).
enum class Content : std::uint8_t { Full, HeadOnly };
inline constexpr std::size_t kContentCount = 2;

struct Answer {
    Status status = Status::Ok;
    Persistence persistence = Persistence::Implied;
    Content content = Content::Full;

    constexpr bool operator==(const Answer&) const noexcept = default;

    /// Position in a table of all answers: 0 to kAnswerCount - 1.
    [[nodiscard]] constexpr std::size_t index() const noexcept {
        return (static_cast<std::size_t>(status) * kPersistenceCount +
                static_cast<std::size_t>(persistence)) *
                   kContentCount +
               static_cast<std::size_t>(content);
    }
};
inline constexpr std::size_t kAnswerCount = kStatusCount * kPersistenceCount * kContentCount;

class AnswerQueue {
public:
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// The oldest answer. Precondition: not empty.
    [[nodiscard]] Answer front() const noexcept { return runs_[begin_].answer; }

    void push(Answer answer) {
        if (size_++ != 0 && runs_.back().answer == answer) {
            ++runs_.back().count;
            return;
        }
        if (begin_ >= kTakenMax) {
            runs_.erase(runs_.begin(), runs_.begin() + begin_);
            begin_ = 0;
        }
        runs_.push_back({answer, 1});
    }

    /// Removes the oldest answer. Precondition: not empty.
    void pop() noexcept {
        if (--runs_[begin_].count == 0) {
            ++begin_;
        }
        if (--size_ == 0) {
            begin_ = 0;
            runs_.clear();
        }
    }

private:
    struct Run {
        Answer answer;
        std::uint32_t count = 0;
    };

    static constexpr std::uint32_t kTakenMax = 64;

    std::vector<Run> runs_;
    std::uint32_t begin_ = 0;  ///< the runs before this one were taken already
    std::uint32_t size_ = 0;
};

}  // namespace hello
