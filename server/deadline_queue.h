// SPDX-License-Identifier: MIT
//
// DeadlineQueue: who is due next, for entries that all get the same time. A new deadline is never
// earlier than those already queued, so a doubly linked list in order of arrival is sorted:
// setting and removing are O(1), and only the head need be looked at. The links live in the
// entries, which are named by slot number.

#pragma once

#include <cstdint>

namespace hello {

inline constexpr std::uint32_t kNoSlot = 0xFFFF'FFFF;

/// What a queue keeps in each entry.
struct DeadlineLink {
    std::uint32_t due_s = 0;  ///< seconds of the caller's clock
    std::uint32_t previous = kNoSlot;
    std::uint32_t next = kNoSlot;
};

/// `Links`: callable as DeadlineLink& links(std::uint32_t slot).
template <typename Links>
class DeadlineQueue {
public:
    explicit DeadlineQueue(Links links) : links_(links) {}

    /// Queues `slot`, which is in no queue. Precondition: `due_s` is not before the last one's.
    void append(std::uint32_t slot, std::uint32_t due_s) noexcept {
        links_(slot) = {due_s, tail_, kNoSlot};
        if (tail_ == kNoSlot) {
            head_ = slot;
        } else {
            links_(tail_).next = slot;
        }
        tail_ = slot;
    }

    void remove(std::uint32_t slot) noexcept {
        const DeadlineLink link = links_(slot);
        (link.previous == kNoSlot ? head_ : links_(link.previous).next) = link.next;
        (link.next == kNoSlot ? tail_ : links_(link.next).previous) = link.previous;
    }

    /// The longest-waiting entry that is due at `now_s`, or kNoSlot. It stays queued.
    [[nodiscard]] std::uint32_t due(std::uint32_t now_s) noexcept {
        return head_ != kNoSlot && links_(head_).due_s <= now_s ? head_ : kNoSlot;
    }

private:
    Links links_;
    std::uint32_t head_ = kNoSlot;
    std::uint32_t tail_ = kNoSlot;
};

}  // namespace hello
