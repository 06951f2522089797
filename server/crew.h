// SPDX-License-Identifier: MIT
//
// Crew: what the workers of a process share. Nothing here is touched per request.

#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "balancer.h"

namespace hello {

/// What the workers of a process share.
struct Crew {
    struct Member {
        std::atomic<int> inbox{-1};      ///< where to hand connections over
        std::atomic<int> wake_fd{-1};    ///< an eventfd
        std::atomic<bool> waits{false};  ///< for room for a connection, or for a descriptor
    };
    explicit Crew(std::size_t worker_count) : balancer(worker_count), members(worker_count) {}

    /// Room has come: wakes those who wait for it.
    void wake_waiting() noexcept {
        anyone_waits = false;
        for (Member& member : members) {
            if (member.waits.exchange(false)) {
                eventfd_write(member.wake_fd, 1);
            }
        }
    }

    Balancer balancer;
    std::vector<Member> members;
    std::atomic<std::size_t> connections{0};  ///< open in the whole process
    std::atomic<bool> anyone_waits{false};
};

}  // namespace hello
