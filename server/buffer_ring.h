// SPDX-License-Identifier: MIT
//
// BufferRing: receive buffers lent to the kernel (provided buffer ring, Linux 5.19). Every buffer
// id is in exactly one place at any time: in the ring, or borrowed by us between a completion and
// give_back(). What is given back becomes visible to the kernel by publish(), once per batch.

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <liburing.h>

#include "ring.h"

namespace hello {

class BufferRing {
public:
    static constexpr std::uint16_t kGroup = 0;  ///< the buffer group of each receive
    static constexpr std::size_t kBufferSize = Engine::kBufferSize;

    /// `count`: a power of two. Throws EngineRefused. `ring` must outlive this.
    BufferRing(Ring& ring, unsigned count);
    ~BufferRing();
    BufferRing(const BufferRing&) = delete;
    BufferRing& operator=(const BufferRing&) = delete;

    /// The octets that a receive put into a buffer, which is ours until give_back(id).
    [[nodiscard]] std::string_view borrow(std::uint16_t id, std::size_t size) noexcept {
        --available_;
        return {address(id), size};
    }

    void give_back(std::uint16_t id) noexcept {
        io_uring_buf_ring_add(ring_, address(id), kBufferSize, id, mask_, unpublished_++);
        ++available_;
    }

    void publish() noexcept {
        io_uring_buf_ring_advance(ring_, unpublished_);
        unpublished_ = 0;
    }

    [[nodiscard]] unsigned count() const noexcept { return count_; }
    [[nodiscard]] unsigned available() const noexcept { return available_; }

private:
    /// One cache line more than the buffer: buffers of 4096 octets in a row would all begin in
    /// the same set of the first-level cache.
    static constexpr std::size_t kStride = kBufferSize + 64;

    [[nodiscard]] char* address(std::uint16_t id) noexcept { return memory_ + id * kStride; }

    Ring& owner_;
    unsigned count_;
    int mask_;
    unsigned available_ = 0;
    int unpublished_ = 0;
    char* memory_ = nullptr;
    io_uring_buf_ring* ring_ = nullptr;
};

}  // namespace hello
