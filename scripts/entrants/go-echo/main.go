// SPDX-License-Identifier: MIT

// Echo without middleware.
package main

import (
	"log"
	"net"
	"net/http"
	"os"

	"github.com/labstack/echo/v4"
)

func main() {
	body := os.Getenv("BODY")
	e := echo.New()
	e.HideBanner = true
	e.HidePort = true
	e.GET("/*", func(c echo.Context) error {
		return c.String(http.StatusOK, body)
	})
	log.Fatal(e.Start(net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT"))))
}
