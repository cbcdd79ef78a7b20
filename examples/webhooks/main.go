// Webhooks is a shop whose webhook receiver is killed twice, at the worst
// times, and loses nothing: its inbox and its ledger share a SQLite database.
//
//	cd examples/webhooks && go run .
//
// The shop's receiver, in receiver.go, is what a merchant would write; it runs
// in its own process. The rest sets up the demonstration: the mock
// gateway, the process that is killed, and the audit.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gateway-go/gateway/examples/internal/demo"
)

// roleVariable makes this program run as the receiver. The program sets it
// when it starts itself.
const roleVariable = "WEBHOOKS_EXAMPLE_ROLE"

func main() {
	if isReceiver() {
		mainReceiver()
		return
	}
	demo.Main("webhooks", run)
}

func isReceiver() bool { return os.Getenv(roleVariable) == "receiver" }

func mainReceiver() {
	if err := receive(context.Background(), os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
}

// run runs the demonstration and returns what was lost or duplicated.
func run(ctx context.Context, out *demo.Printer) (err error) {
	s, err := newStage(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return demo.Steps(ctx, s.sell, s.killAnywhere, s.killBeforeCommit, s.recover, s.forge, s.audit)
}
