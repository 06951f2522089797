-- SPDX-License-Identifier: MIT
--
-- A script for wrk that sends 16 requests at once on each connection, without waiting for answers
-- in between. No browser does that; it shows what parsing and writing cost without system calls.
-- It reports as report.lua beside it does.

local depth = 16
local batch

init = function(args)
    local requests = {}
    for i = 1, depth do
        requests[i] = wrk.format()
    end
    batch = table.concat(requests)
end

request = function()
    return batch
end

local folder = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
dofile(folder .. "report.lua")
