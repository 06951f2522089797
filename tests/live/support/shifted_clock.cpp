// SPDX-License-Identifier: MIT
//
// The test's side of the shifted clock: see shifted_clock.h.

#include "support/shifted_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <catch2/catch_test_macros.hpp>

#include "preload/clock_shift.h"
#include "support/file_descriptor.h"
#include "support/time_scale.h"

namespace hello::test {

ShiftedClock::ShiftedClock() : path_((folder_.path() / "shift").string()) {
    if (kSlowBuild) {
        SKIP("the sanitizers allow no library in front of theirs");
    }
    const FileDescriptor file(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    void* memory = MAP_FAILED;
    if (ftruncate(file.get(), sizeof(ClockShift)) == 0) {
        memory =
            mmap(nullptr, sizeof(ClockShift), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    }
    if (memory == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), path_);
    }
    shared_ = static_cast<ClockShift*>(memory);
}

ShiftedClock::~ShiftedClock() {
    munmap(shared_, sizeof(ClockShift));
}

std::vector<std::pair<std::string, std::string>> ShiftedClock::environment() const {
    return {{"LD_PRELOAD", HELLO_CLOCK_SHIFT_LIBRARY}, {ClockShift::kFileVariable, path_}};
}

void ShiftedClock::require_use() const {
    if (shared_->times_asked == 0) {
        SKIP("the server under test loads no library in front of the C library");
    }
}

void ShiftedClock::shift(std::int64_t seconds) {
    shared_->seconds = seconds;
}

}  // namespace hello::test
