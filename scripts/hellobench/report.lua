-- SPDX-License-Identifier: MIT
--
-- A script for wrk that adds one line of JSON to its report: exact counts, and the latencies as
-- [microseconds, count] pairs. It hooks nothing that runs per request, so it costs nothing.
-- Percentile 100 is left out: wrk answers 0 for it.

done = function(summary, latency, requests)
    local percentiles, pairs_of_values = {}, {}
    for _, p in ipairs({50, 75, 90, 95, 99, 99.9, 99.99}) do
        percentiles[#percentiles + 1] = string.format('"%g":%d', p, latency:percentile(p))
    end
    for i = 1, #latency do
        local value, count = latency(i)
        pairs_of_values[i] = string.format("[%d,%d]", value, count)
    end
    local e = summary.errors
    io.stdout:write(
        string.format('JSON {"duration_us":%d,"requests":%d,"bytes":%d,', summary.duration,
                      summary.requests, summary.bytes),
        string.format('"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d},',
                      e.connect, e.read, e.write, e.status, e.timeout),
        string.format('"latency_us":{"min":%d,"max":%d,"mean":%.3f,"stdev":%.3f,"n":%d,"p":{%s}},',
                      latency.min, latency.max, latency.mean, latency.stdev, #latency,
                      table.concat(percentiles, ",")),
        '"histogram":[', table.concat(pairs_of_values, ","), "]}\n")
end
