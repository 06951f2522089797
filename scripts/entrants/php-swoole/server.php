<?php
// SPDX-License-Identifier: MIT

// Swoole's HTTP server; it takes an address and no name to listen on.

$body = getenv('BODY');
$cores = (int) getenv('CORES');
$host = gethostbyname(getenv('HOST'));
$family = str_contains($host, ':') ? SWOOLE_SOCK_TCP6 : SWOOLE_SOCK_TCP;

$server = new Swoole\Http\Server($host, (int) getenv('PORT'), SWOOLE_PROCESS, $family);
$server->set(['worker_num' => $cores, 'reactor_num' => $cores, 'log_level' => SWOOLE_LOG_WARNING]);
$server->on('request', function ($request, $response) use ($body) {
    $response->header('Content-Type', 'text/plain');
    $response->end($body);
});
$server->start();
