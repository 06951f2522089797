// SPDX-License-Identifier: MIT
//
// Counts allocations by replacing the global operators new and delete: see allocation_counter.h.

#include "allocation_counter.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace hello::test {
namespace {

std::atomic<std::size_t> allocation_calls{0};
std::atomic<std::size_t> bytes{0};

void* allocate(std::size_t size) noexcept {
    void* memory = std::malloc(size == 0 ? 1 : size);
    if (memory != nullptr) {
        allocation_calls.fetch_add(1, std::memory_order_relaxed);
        bytes.fetch_add(::malloc_usable_size(memory), std::memory_order_relaxed);
    }
    return memory;
}

void* allocate_or_throw(std::size_t size) {
    void* memory = allocate(size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

void release(void* memory) noexcept {
    if (memory != nullptr) {
        bytes.fetch_sub(::malloc_usable_size(memory), std::memory_order_relaxed);
        std::free(memory);
    }
}

}  // namespace

std::size_t AllocationCounter::calls() noexcept {
    return allocation_calls.load(std::memory_order_relaxed);
}

std::size_t AllocationCounter::bytes_in_use() noexcept {
    return bytes.load(std::memory_order_relaxed);
}

}  // namespace hello::test

// The whole family, so that no block is taken by one implementation and given back to another.
void* operator new(std::size_t size) {
    return hello::test::allocate_or_throw(size);
}
void* operator new[](std::size_t size) {
    return hello::test::allocate_or_throw(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return hello::test::allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return hello::test::allocate(size);
}
void operator delete(void* memory) noexcept {
    hello::test::release(memory);
}
void operator delete[](void* memory) noexcept {
    hello::test::release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    hello::test::release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    hello::test::release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    hello::test::release(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    hello::test::release(memory);
}
