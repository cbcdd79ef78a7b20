package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/webhook"
)

// The exit codes of the commands.
const (
	exitRefused   = 1 // the gateway has rejected the call, or a check has failed
	exitUsage     = 2
	exitNoGateway = 3
)

// command is a subcommand. The table of them is read for the dispatch, the help and the
// completion of shells; a test compares it with docs/mockgateway.md.
type command struct {
	group    string // in the help
	name     string
	args     string // after the name, in the help
	about    string
	examples []string
	words    []string // completions of the arguments

	// client adds the command's flags and returns what runs it. The other kinds of
	// commands have run, which also parses their flags.
	client func(set *flag.FlagSet) action
	run    func(ctx context.Context, p environment, args []string) int
}

// action runs a command of a client with its arguments.
type action func(ctx context.Context, s *session, args []string) error

// environment is that in which a command runs.
type environment struct {
	environ   []string
	out, errs io.Writer
}

// commands returns the table.
func commands() []command {
	const run, pay, clock, hooks, look, shell = "Run", "What payers and banks do", "Time and faults", "Webhooks", "Look", "Shell"
	kinds := texts(webhook.DocumentedKinds())
	return []command{
		{
			group: run, name: "serve", args: "[flags]", about: "starts the gateway, as `mockgateway` without a command does",
			examples: []string{"mockgateway serve -clock manual"}, run: runServe,
		},
		{
			group: run, name: "exam", args: "[flags] -- COMMAND", about: "examines a program that uses the gateway",
			examples: []string{"mockgateway exam -- python3 shop.py"},
			run: func(ctx context.Context, p environment, args []string) int {
				return examine(ctx, args, p.environ, p.out, p.errs)
			},
		},
		{
			group: run, name: "mcp", args: "[arguments]", about: "runs `gateway-mcp` from the folder of this binary or from PATH",
			run: runMCP,
		},

		{group: pay, name: "pay", args: "ID", about: "the payer pays a transaction or a checkout link", client: act("transactions/pay", "checkout/pay")},
		{group: pay, name: "expire", args: "ID", about: "a transaction or a checkout link expires", client: act("transactions/expire", "checkout/expire")},
		{group: pay, name: "refuse", args: "ID", about: "the issuer refuses a card transaction", client: act("transactions/refuse")},
		{group: pay, name: "cancel", args: "ID", about: "a pending transaction is canceled", client: act("transactions/cancel")},
		{group: pay, name: "chargeback", args: "ID", about: "the payer's bank takes a card payment back", client: act("transactions/chargeback")},
		{group: pay, name: "settle", args: "ID", about: "the money of a transfer arrives", client: act("transfers/settle")},
		{group: pay, name: "fail", args: "ID", about: "a transfer fails, or the next charge of a subscription", client: act("transfers/fail", "subscriptions/fail-next")},

		{
			group: clock, name: "advance", args: "DURATION | TIME | next", about: "advances the virtual clock by a duration, to a time or to the next timer",
			examples: []string{"mockgateway advance 40d", "mockgateway advance 2027-02-01T00:00:00Z"}, words: []string{"next"}, client: advance,
		},
		{
			group: clock, name: "fault", args: "FAULT [ON] | list | clear [ID]", about: "adds a fault of requests or webhooks, lists them, or removes them",
			examples: []string{"mockgateway fault lose-response transactions.create -times 1", `mockgateway fault "status=503; retry-after=2"`},
			words:    append([]string{"list", "clear"}, faults.Names()...), client: fault,
		},

		{
			group: hooks, name: "listen", args: "-forward-to URL", about: "registers a receiver of webhooks, shows its deliveries, and removes it at the end",
			examples: []string{"mockgateway listen -forward-to localhost:3000/webhooks"}, client: listenTo,
		},
		{
			group: hooks, name: "trigger", args: "KIND", about: "sends a sample event; with `-real`, one about a transaction that it creates",
			examples: []string{"mockgateway trigger transaction.paid -real"}, words: kinds, client: trigger,
		},

		{
			group: look, name: "tail", args: "", about: "shows what happens, in the format of the log, until Ctrl-C",
			examples: []string{"mockgateway tail -types transition,delivery"}, words: events.Types(), client: tail,
		},
		{
			group: look, name: "doctor", args: "", about: "checks the gateway, its version, its clock, its faults and the receivers of its webhooks",
			examples: []string{"mockgateway doctor -secret whsec_…"}, client: doctor,
		},

		{
			group: shell, name: "completion", args: "bash | zsh | fish", about: "prints a script that completes the commands",
			examples: []string{`eval "$(mockgateway completion bash)"`}, words: []string{"bash", "zsh", "fish"}, run: completion,
		},
		{group: shell, name: "help", args: "[COMMAND]", about: "explains a command, or lists all of them with the flags of `serve`", run: help},
	}
}

// named returns the command with a name.
func named(name string) (command, bool) {
	list := commands()
	i := slices.IndexFunc(list, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return list[i], true
}

// usage returns the command line in the help.
func (c command) usage() string { return strings.TrimRight(c.name+" "+c.args, " ") }

// flags returns the flags of a client's command, besides the arguments.
func (c command) flags() (*flag.FlagSet, *session, action) {
	set := flag.NewFlagSet("mockgateway "+c.name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	s := &session{}
	s.set(set)
	return set, s, c.client(set)
}

// do runs the command and returns the exit code.
func (c command) do(ctx context.Context, p environment, args []string) int {
	if c.client == nil {
		return c.run(ctx, p, args)
	}
	set, s, do := c.flags()
	args, err := parseMixed(set, args)
	if errors.Is(err, flag.ErrHelp) {
		c.help(p.out, set)
		return 0
	}
	if err == nil {
		err = s.open(p)
	} else {
		err = &usageError{err.Error()}
	}
	if err == nil {
		err = do(ctx, s, args)
		s.transport.CloseIdleConnections()
	}
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		log{}.note(p.errs, noteError, err.Error()+"\nRun mockgateway help "+c.name+".")
		return exitUsage
	case errors.Is(err, admin.ErrNoGateway):
		log{}.note(p.errs, noteError, err.Error()+"\nStart one with mockgateway serve, or set -addr or MOCKGATEWAY_ADDR.")
		return exitNoGateway
	}
	log{}.note(p.errs, noteError, err.Error())
	return exitRefused
}

// usageError is a wrong argument or flag.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func wrongUsage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// parseMixed parses flags that may also follow the arguments, which it returns.
func parseMixed(set *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := set.Parse(args); err != nil {
			return nil, err
		}
		if set.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, set.Arg(0)), set.Args()[1:]
	}
}

// runServe runs the gateway, for the command serve or without one.
func runServe(ctx context.Context, p environment, args []string) int {
	cfg, code, done := parse(args, p.environ, p.out, p.errs)
	if done {
		return code
	}
	do := serve
	if cfg.health {
		do = health
	}
	if err := do(ctx, cfg, p.out, p.errs); err != nil {
		cfg.log.note(p.errs, noteError, err.Error())
		return 1
	}
	return 0
}

// help is the command help.
func help(ctx context.Context, p environment, args []string) int {
	if len(args) == 0 {
		return runServe(ctx, p, []string{"-h"})
	}
	c, ok := named(args[0])
	if !ok {
		return unknownCommand(p, args[0])
	}
	if c.client != nil || c.name == "serve" || c.name == "exam" {
		return c.do(ctx, p, []string{"-h"})
	}
	c.help(p.out, nil)
	return 0
}

// unknownCommand reports a first argument that is no command.
func unknownCommand(p environment, name string) int {
	text, list := fmt.Sprintf("unknown command %q", name), commands()
	i := slices.IndexFunc(list, func(c command) bool {
		return strings.HasPrefix(c.name, name) || len(name) > 3 && strings.HasPrefix(name, c.name[:3])
	})
	if i >= 0 {
		text += "; did you mean " + list[i].name + "?"
	}
	log{}.note(p.errs, noteError, text+"\nRun mockgateway help for the commands.")
	return exitUsage
}

// help explains the command.
func (c command) help(out io.Writer, set *flag.FlagSet) {
	_, _ = fmt.Fprintf(out, "mockgateway %s %s.\n\nusage: mockgateway %s\n", c.name, plainText(c.about), c.usage())
	if len(c.words) > 0 {
		_, _ = fmt.Fprintf(out, "\nvalues: %s\n", strings.Join(c.words, ", "))
	}
	for i, example := range c.examples {
		_, _ = fmt.Fprintf(out, "%s  %s\n", map[bool]string{true: "\nexamples:\n"}[i == 0], example)
	}
	if set != nil {
		_, _ = io.WriteString(out, "\nflags:\n")
		set.VisitAll(func(f *flag.Flag) { explain(out, f, "") })
		_, _ = io.WriteString(out, "\n"+exitCodes)
	}
}

const exitCodes = `exit codes: 0, 1 if the gateway rejects the call or a check fails, 2 if an argument or a
flag is wrong, 3 if no gateway responds.
`

// listCommands writes the commands in their groups.
func listCommands(out io.Writer) {
	group := ""
	for _, c := range commands() {
		if c.group != group {
			group = c.group
			_, _ = fmt.Fprintf(out, "\n%s:\n", group)
		}
		_, _ = fmt.Fprintf(out, "  %-38s %s\n", c.usage(), plainText(c.about))
	}
}

// plainText returns a text of the table without the marks of code in the guide.
func plainText(text string) string { return strings.ReplaceAll(text, "`", "") }

func texts[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// lookup returns a variable of the environment, or the other text if it is empty or not
// set.
func lookup(environ []string, name, otherwise string) string {
	for _, entry := range environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			otherwise = cmp.Or(value, otherwise)
		}
	}
	return otherwise
}

// standardInput is what mcp passes on and -stop-with-stdin watches.
func standardInput() *os.File { return os.Stdin }
