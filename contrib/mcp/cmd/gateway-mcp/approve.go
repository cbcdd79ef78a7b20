package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gateway-go/gateway/contrib/mcp/intent"
	"github.com/gateway-go/gateway/contrib/mcp/money"
)

// runApprove asks in the terminal of the process. Standard input is not enough: an agent
// can write to it.
func runApprove(_ context.Context, args []string, _ io.Reader, _, stderr io.Writer) int {
	err := approve(args, func() (io.ReadWriteCloser, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) })
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "gateway-mcp approve: %v\n", err)
		return 1
	}
	return 0
}

const approveUsage = "usage: gateway-mcp approve -journal FILE INTENT"

func approve(args []string, terminal func() (io.ReadWriteCloser, error)) (err error) {
	s := flag.NewFlagSet("gateway-mcp approve", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	path := s.String("journal", "", "")
	if err := s.Parse(args); err != nil || *path == "" || s.NArg() != 1 {
		return errors.Join(err, errors.New(approveUsage))
	}
	if _, err := os.Stat(*path); err != nil { // Open would create it
		return fmt.Errorf("-journal: %w", err)
	}
	j, err := intent.Open(*path, intent.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	i, err := j.Get("", s.Arg(0))
	if err != nil {
		return err
	}
	if i.State != intent.Prepared || i.Approved {
		return fmt.Errorf("%s needs no approval: it is %s, approved: %t", i.ID, i.State, i.Approved)
	}
	tty, err := terminal()
	if err != nil {
		return fmt.Errorf("a person must approve it in a terminal: %w", err)
	}
	defer func() { err = errors.Join(err, tty.Close()) }()
	return askInTerminal(tty, j, i)
}

func askInTerminal(tty io.ReadWriter, j *intent.Journal, i *intent.Intent) error {
	_, _ = fmt.Fprintf(tty, "%s\nAccount %s, asked by %s.\n", money.Question(i), i.Account, i.Principal)
	for _, id := range i.Similar {
		if similar, err := j.Get("", id); err == nil {
			_, _ = fmt.Fprintf(tty, "WARNING: %s would pay the same to the same payee (%s, prepared %s): %s\n",
				id, similar.State, similar.PreparedAt.Format("2006-01-02 15:04"), money.Question(similar))
		}
	}
	_, _ = fmt.Fprint(tty, "Type yes to approve it, anything else to decline: ")
	line, err := bufio.NewReader(tty).ReadString('\n')
	if err != nil {
		return fmt.Errorf("no decision: %w", err)
	}
	yes := strings.TrimSpace(line) == "yes"
	if _, err := j.Decide("", i.ID, i.Round, yes, intent.ViaTerminal); err != nil {
		return err
	}
	if !yes {
		return errors.New("declined: nothing is sent")
	}
	_, _ = fmt.Fprintln(tty, "Approved. Tell the agent to call commit_intent again.")
	return nil
}
