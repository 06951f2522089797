// SPDX-License-Identifier: MIT

// Iris without iris.Default(), which would log each request.
package main

import (
	"log"
	"net"
	"os"

	"github.com/kataras/iris/v12"
)

func main() {
	body := os.Getenv("BODY")
	app := iris.New()
	app.Get("/{path:path}", func(ctx iris.Context) {
		ctx.WriteString(body)
	})
	address := net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT"))
	if err := app.Listen(address, iris.WithoutStartupLog); err != nil {
		log.Fatal(err)
	}
}
