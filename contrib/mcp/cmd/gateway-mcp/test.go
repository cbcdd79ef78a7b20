package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/testplane"
	"github.com/gateway-go/gateway/internal/version"
	"github.com/gateway-go/gateway/mockserver"
)

func testCommands() []command {
	return []command{{"test", "tools for testing against a mock gateway; moves no money", runTest}}
}

// testFlags are the flags of the test plane.
type testFlags struct {
	mock, addr, dialect, clock, seedFile string
	http, secrets, audit                 string
	examCommand, examPath                string
	examBudget                           time.Duration
}

const testUsage = `gateway-mcp test serves the test plane on standard input and output: tools for an agent that
tests a merchant's program against a mock gateway. It holds no real key and moves no money.

usage: gateway-mcp test [flags]

Environment: GATEWAY_API_KEY is the key for -mock, and must begin with sk_test_ (default
sk_test_mock). GATEWAY_MCP_TOKEN is the bearer token that clients of -http must send.

flags:
`

func (f *testFlags) parse(args []string, out io.Writer) error {
	s := flag.NewFlagSet("gateway-mcp test", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	s.StringVar(&f.mock, "mock", "", "`URL` of a mock gateway that runs on this machine; empty starts one in this process")
	s.StringVar(&f.addr, "addr", "127.0.0.1:0", "loopback `address` of the mock gateway in this process")
	s.StringVar(&f.dialect, "dialect", "document", "`document|live`: how the mock gateway in this process responds")
	s.StringVar(&f.clock, "clock", "manual", "`manual|realtime`: whether the clock of the mock gateway in this process runs by itself")
	s.StringVar(&f.seedFile, "seed-file", "", "`file` with the resources that the mock gateway in this process starts with")
	s.StringVar(&f.http, "http", "", "serve MCP over HTTP on this loopback `address` instead of standard input and output")
	s.StringVar(&f.secrets, "secrets", "", "`folder` for files with the mock's key and signing secrets; empty means a new one that is removed at the end")
	s.StringVar(&f.audit, "audit", "", "`file` that gets a line of JSON for each call")
	s.StringVar(&f.examCommand, "exam-command", "", "`command` that starts your program, for the tool run_exam; it is split at spaces, so put anything else into a script")
	s.StringVar(&f.examPath, "exam-webhook-path", "/webhooks", "`path` of your program's webhooks, for run_exam")
	s.DurationVar(&f.examBudget, "exam-budget", 0, "`duration` after which run_exam begins no scenario any more; 0 means 3m")
	if err := s.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = io.WriteString(out, testUsage)
			s.SetOutput(out)
			s.PrintDefaults()
		}
		return err
	}
	return f.check(s)
}

func (f *testFlags) check(s *flag.FlagSet) error {
	if s.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", s.Arg(0))
	}
	for name, addr := range map[string]string{"addr": f.addr, "http": f.http} {
		host, _, err := net.SplitHostPort(addr)
		if addr != "" && (err != nil || !testplane.Loopback(host)) {
			return fmt.Errorf("-%s must be a loopback address with a port, such as 127.0.0.1:0, not %q", name, addr)
		}
	}
	if f.dialect != "document" && f.dialect != "live" {
		return fmt.Errorf("-dialect must be document or live, not %q", f.dialect)
	}
	if f.clock != "manual" && f.clock != "realtime" {
		return fmt.Errorf("-clock must be manual or realtime, not %q", f.clock)
	}
	if f.examBudget < 0 {
		return errors.New("-exam-budget must not be negative")
	}
	var wrong error
	s.Visit(func(g *flag.Flag) {
		switch g.Name {
		case "addr", "clock", "seed-file":
			if f.mock != "" {
				wrong = fmt.Errorf("-%s has no effect with -mock: remove one of them", g.Name)
			}
		}
	})
	return wrong
}

// runTest runs the test plane.
func runTest(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var f testFlags
	err := f.parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "gateway-mcp test: %v\nRun gateway-mcp test -h for help.\n", err)
		return 2
	}
	if err := f.serve(ctx, stdin, stdout, stderr); err != nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(stderr, "gateway-mcp test: %v\n", err)
		return 1
	}
	return 0
}

func (f *testFlags) serve(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	cfg := testplane.Config{
		URL: f.mock, Key: gateway.NewSecret(cmp.Or(os.Getenv("GATEWAY_API_KEY"), "sk_test_mock")), Secrets: f.secrets, Version: version.Of("gateway-mcp"),
		Exam: testplane.Exam{Command: strings.Fields(f.examCommand), Path: f.examPath, Dialect: f.dialect, Budget: f.examBudget},
	}
	written, closeAudit, err := openAudit(f.audit, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAudit()) }()
	cfg.Audit = written
	if f.mock == "" {
		gw, err := mockserver.New(f.options()...)
		if err != nil {
			return err
		}
		defer func() { _ = gw.Close() }()
		if cfg.URL, err = gw.Listen(f.addr); err != nil { //nolint:contextcheck // until Close
			return err
		}
		cfg.Key = gateway.NewSecret(gw.Key())
	}
	p, err := testplane.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	_, _ = fmt.Fprintf(stderr, "gateway-mcp test: the mock gateway is at %s\n", cfg.URL)
	if f.http != "" {
		h := httpServer{plane: "test", addr: f.http, token: os.Getenv("GATEWAY_MCP_TOKEN"), drain: 2 * time.Second}
		return h.serve(ctx, p.Server(), stderr)
	}
	return p.Server().Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(stdin), Writer: stdio{stdout}})
}

func (f *testFlags) options() []mockserver.Option {
	opts := []mockserver.Option{mockserver.WithStart(time.Now())}
	if f.dialect == "live" {
		opts = append(opts, mockserver.WithDialect(mockserver.Live))
	}
	if f.clock == "realtime" {
		opts = append(opts, mockserver.WithRealtime(1))
	}
	if f.seedFile != "" {
		opts = append(opts, mockserver.WithSeedFile(f.seedFile))
	}
	return opts
}
