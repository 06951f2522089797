// SPDX-License-Identifier: MIT
//
// Health check: one GET, for containers that hold no shell and no curl.

#pragma once

#include <string>

namespace hello {

/// Whether a GET of `url` ("http://HOST[:PORT][/PATH]") is answered 200 within 3 seconds. Says on
/// standard error why not.
[[nodiscard]] bool check_health(const std::string& url);

}  // namespace hello
