// SPDX-License-Identifier: MIT
//
// ResponseImages: every response this server can give, as ready-made octets. Only the Date
// changes, and it is patched in place once a second. Each image is complete (status line, fields,
// empty line, content), its Content-Length exact, its Date that of the last refresh().

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answer.h"

namespace hello {

class ResponseImages {
public:
    /// `body`: content of a 200. `server`: value of the Server field; empty leaves the field out.
    ResponseImages(std::string_view body, std::string_view server);

    /// Patches Date in all images where `seconds` (Unix time) differs from the last call.
    void refresh(std::int64_t seconds) noexcept {
        if (seconds != date_seconds_) {
            patch(seconds);
        }
    }

    /// The octets to send; they stay where they are, and change only by refresh().
    [[nodiscard]] std::string_view image(Answer answer) const noexcept {
        const Extent& extent = extents_[answer.index()];
        return {octets_.data() + extent.begin, extent.size};
    }

private:
    struct Extent {
        std::uint32_t begin = 0;
        std::uint32_t size = 0;
    };

    void append(Answer answer, std::string_view body, std::string_view server);
    void patch(std::int64_t seconds) noexcept;

    std::string octets_;
    std::array<Extent, kAnswerCount> extents_{};
    std::vector<std::uint32_t> date_offsets_;
    std::int64_t date_seconds_ = -1;
};

}  // namespace hello
