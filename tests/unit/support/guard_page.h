// SPDX-License-Identifier: MIT
//
// GuardedCopy: a copy of some octets that ends exactly where an inaccessible page begins, so that
// reading even one octet too many is a fault. Each copy wipes the one before: whoever still looks
// at old octets sees rubbish.

#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace hello::test {

class GuardedCopy {
public:
    /// Room for copies of at most `bytes_max`.
    explicit GuardedCopy(std::size_t bytes_max) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        usable_ = (bytes_max + page - 1) / page * page;
        mapped_ = usable_ + page;
        void* memory =
            ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            throw std::system_error(errno, std::generic_category(), "mmap");
        }
        memory_ = static_cast<char*>(memory);
        if (::mprotect(memory_ + usable_, page, PROT_NONE) != 0) {
            throw std::system_error(errno, std::generic_category(), "mprotect");
        }
    }
    GuardedCopy(const GuardedCopy&) = delete;
    GuardedCopy& operator=(const GuardedCopy&) = delete;
    ~GuardedCopy() { ::munmap(memory_, mapped_); }

    /// The copy is valid until the next call.
    [[nodiscard]] std::string_view place(std::string_view octets) {
        if (octets.size() > usable_) {
            throw std::length_error("GuardedCopy: too many octets");
        }
        char* const end = memory_ + usable_;
        std::memset(end - used_, '\xEE', used_);
        used_ = octets.size();
        if (used_ != 0) {
            std::memcpy(end - used_, octets.data(), used_);
        }
        return {end - used_, used_};
    }

private:
    char* memory_ = nullptr;
    std::size_t usable_ = 0;
    std::size_t mapped_ = 0;
    std::size_t used_ = 0;  ///< size of the copy before
};

}  // namespace hello::test
