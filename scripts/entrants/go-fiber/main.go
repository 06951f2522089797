// SPDX-License-Identifier: MIT

// Fiber as its documentation shows it: one process, not prefork.
package main

import (
	"log"
	"net"
	"os"

	"github.com/gofiber/fiber/v3"
)

func main() {
	body := os.Getenv("BODY")
	app := fiber.New()
	app.Get("/*", func(c fiber.Ctx) error {
		return c.SendString(body)
	})
	address := net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT"))
	log.Fatal(app.Listen(address, fiber.ListenConfig{
		DisableStartupMessage: true,
		ListenerNetwork:       fiber.NetworkTCP, // Its default is IPv4 alone.
	}))
}
