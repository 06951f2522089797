// SPDX-License-Identifier: MIT
//
// Set-up of the provided buffer ring: see buffer_ring.h.

#include "buffer_ring.h"

#include "error.h"

namespace hello {

BufferRing::BufferRing(Ring& ring, unsigned count)
    : owner_(ring), count_(count), mask_(io_uring_buf_ring_mask(count)) {
    void* memory =
        mmap(nullptr, count * kStride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        check_errno(-1, "mmap of receive buffers");
    }
    memory_ = static_cast<char*>(memory);
    int error = 0;
    ring_ = io_uring_setup_buf_ring(ring.get(), count, kGroup, 0, &error);
    if (ring_ == nullptr) {
        munmap(memory_, count * kStride);
        throw EngineRefused(explain_refusal(-error), -error);
    }
    for (unsigned id = 0; id < count; ++id) {
        give_back(static_cast<std::uint16_t>(id));
    }
    publish();
}

BufferRing::~BufferRing() {
    io_uring_free_buf_ring(owner_.get(), ring_, count_, kGroup);
    munmap(memory_, count_ * kStride);
}

}  // namespace hello
