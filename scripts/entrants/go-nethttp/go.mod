// SPDX-License-Identifier: MIT

module hello

go 1.21
