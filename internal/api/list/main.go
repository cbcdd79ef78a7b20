// Command list prints the exported API of the module; see package api.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/gateway-go/gateway/internal/api"
)

func main() {
	lines, err := api.List(".")
	if err == nil {
		_, err = fmt.Fprintln(os.Stdout, strings.Join(lines, "\n"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
