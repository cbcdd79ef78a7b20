// Quickstart takes an order through a whole Pix payment: charge, QR code, webhooks,
// partial refund, and a create whose response is lost.
//
//	go run ./examples/quickstart                     # with a mock gateway in this process
//	go run ./examples/quickstart -order FILE         # your own order; order.json shows the form
//	GATEWAY_BASE_URL=… GATEWAY_API_KEY=… go run ./examples/quickstart
//
// With the two variables it does the same against that gateway, except for the
// steps that only a mock supports. Use a sandbox: the charges are real.
//
// The exit code is 0 if everything went as expected, 1 if not, and 2 for an invalid
// flag, order file or environment.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/pix"
)

//go:generate go -C ../.. run ./internal/recording/record docs/quickstart.svg ./examples/quickstart

const (
	exitUnexpected = 1
	exitNoStart    = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(problems)
	file := flags.String("order", "", "read the order from this `file` instead of using the built-in one")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitNoStart
	}
	if flags.NArg() > 0 {
		_, _ = fmt.Fprintf(problems, "quickstart: unknown argument %q: an order file is given with -order\n", flags.Arg(0))
		return exitNoStart
	}
	order, err := LoadOrder(*file)
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return exitNoStart
	}
	shop, err := OpenShop()
	if err != nil {
		_, _ = fmt.Fprintln(problems, "quickstart:", err)
		return exitNoStart
	}
	defer shop.Close()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := runSession(ctx, &session{Printer: demo.New(out), draw: drawing(out), shop: shop, order: order}); err != nil {
		_, _ = fmt.Fprintln(problems, "\nquickstart:", err)
		return exitUnexpected
	}
	return 0
}

// drawing returns how to draw a QR code: in color if the terminal supports it.
func drawing(out io.Writer) func(pix.QR) string {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return pix.QR.Terminal
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return pix.QR.Terminal
	}
	return pix.QR.Color
}
