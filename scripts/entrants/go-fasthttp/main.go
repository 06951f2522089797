// SPDX-License-Identifier: MIT

// fasthttp with one handler for all paths.
package main

import (
	"log"
	"net"
	"os"

	"github.com/valyala/fasthttp"
)

func main() {
	body := os.Getenv("BODY")
	// Its own ListenAndServe is for IPv4 alone.
	listener, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(fasthttp.Serve(listener, func(ctx *fasthttp.RequestCtx) {
		ctx.WriteString(body)
	}))
}
