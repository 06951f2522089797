// SPDX-License-Identifier: MIT

// Gin in release mode and without gin.Default(), which would log each request.
package main

import (
	"log"
	"net"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"
)

func main() {
	body := os.Getenv("BODY")
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/*path", func(c *gin.Context) {
		c.String(http.StatusOK, body)
	})
	log.Fatal(router.Run(net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT"))))
}
