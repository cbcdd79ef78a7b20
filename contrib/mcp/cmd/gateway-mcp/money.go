package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/intent"
	"github.com/gateway-go/gateway/contrib/mcp/money"
	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/internal/version"
	"github.com/gateway-go/gateway/legacy"
)

func moneyCommands() []command {
	return []command{
		{"money", "tools that move money through a gateway, each payment once and with a person's approval", runMoney},
		{"approve", "approves a payment in a terminal: gateway-mcp approve -journal FILE INTENT", runApprove},
	}
}

const moneyUsage = `gateway-mcp money serves the money plane on standard input and output.

usage: gateway-mcp money -journal FILE [-allow KINDS -limit LIMIT] [flags]

Environment: GATEWAY_BASE_URL is the gateway's address, GATEWAY_API_KEY its key unless
-key-file names a file. GATEWAY_MCP_TOKEN is the bearer token that clients of -http must send.

flags:
`

// moneyFlags are the flags of the money plane.
type moneyFlags struct {
	url, keyFile, account, journal, audit, profile string
	allow                                          []intent.Kind
	limits                                         intent.Limits
	approve                                        string
	clientBelow                                    int64
	http, tlsCert, tlsKey, approvalKey             string

	getenv func(string) string
}

func (f *moneyFlags) parse(args []string, out io.Writer) error {
	f.limits = intent.Limits{}
	s := flag.NewFlagSet("gateway-mcp money", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	s.StringVar(&f.url, "url", f.getenv("GATEWAY_BASE_URL"), "`URL` of the gateway; default GATEWAY_BASE_URL")
	s.StringVar(&f.keyFile, "key-file", "", "`file` with the gateway's key, instead of GATEWAY_API_KEY")
	s.StringVar(&f.account, "account", "default", "`name` of the account that the key belongs to; never change it")
	s.StringVar(&f.journal, "journal", "", "`file` of the journal; created with mode 0600. Processes of one account share it")
	s.StringVar(&f.audit, "audit", "", "`file` that gets a line of JSON for each call")
	s.StringVar(&f.profile, "profile", "", "`file` with the report of gatewayprobe for this gateway: the server does not start if references are not unique there")
	s.Func("allow", "`KINDS` that may be prepared: payout, refund and charge, with commas between; default none", f.addKinds)
	s.Func("limit", "`KIND=CENTS/day,CENTS/each` of an allowed kind, KIND:CURRENCY if it is not BRL; repeat it for each kind", f.limits.Set)
	s.StringVar(&f.approve, "approve", "terminal", "`terminal|client`: where approvals count. A host may decide for the user, so client is your choice")
	s.Int64Var(&f.clientBelow, "approve-client-below", 0, "amounts below these `cents` may be approved in the client")
	s.StringVar(&f.http, "http", "", "serve MCP over HTTP on this `address` instead of standard input and output")
	s.StringVar(&f.tlsCert, "tls-cert", "", "`file` with the certificate for -http; required unless the address is loopback")
	s.StringVar(&f.tlsKey, "tls-key", "", "`file` with the key of the certificate")
	s.StringVar(&f.approvalKey, "approval-key-file", "", "`file` with at least 32 random bytes that several servers behind one address share; default a random key")
	if err := s.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = io.WriteString(out, moneyUsage)
			s.SetOutput(out)
			s.PrintDefaults()
		}
		return err
	}
	return f.check(s.Args())
}

func (f *moneyFlags) addKinds(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		kind := intent.Kind(name)
		if !slices.Contains([]intent.Kind{intent.Payout, intent.Refund, intent.Charge}, kind) {
			return fmt.Errorf("%q must be payout, refund or charge", name)
		}
		f.allow = append(f.allow, kind)
	}
	return nil
}

func (f *moneyFlags) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case f.url == "":
		return errors.New("-url or GATEWAY_BASE_URL is required")
	case f.journal == "":
		return errors.New("-journal is required: the journal keeps a payment from being made twice")
	case f.approve != "terminal" && f.approve != "client":
		return fmt.Errorf("-approve must be terminal or client, not %q", f.approve)
	case f.clientBelow < 0:
		return errors.New("-approve-client-below must not be negative")
	case f.clientBelow > 0 && f.approve == "client":
		return errors.New("-approve-client-below has no effect with -approve=client: remove one of them")
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return errors.New("-tls-cert and -tls-key must be set together")
	case f.http == "" && f.tlsCert != "":
		return errors.New("-tls-cert has no effect without -http")
	}
	for _, kind := range f.allow {
		if !f.limited(kind) {
			return fmt.Errorf("-allow %s needs a limit: add -limit %s=CENTS/day,CENTS/each", kind, kind)
		}
	}
	return f.checkHTTP()
}

func (f *moneyFlags) limited(kind intent.Kind) bool {
	for of := range f.limits {
		if of.Kind == kind {
			return true
		}
	}
	return false
}

func (f *moneyFlags) checkHTTP() error {
	if f.http == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(f.http)
	if err != nil {
		return fmt.Errorf("-http must be HOST:PORT, not %q", f.http)
	}
	ip, err := netip.ParseAddr(host)
	if local := host == "localhost" || err == nil && ip.IsLoopback(); !local && f.tlsCert == "" {
		return fmt.Errorf("-http %s is reachable from other machines: use a loopback address, or set -tls-cert and -tls-key", f.http)
	}
	if token := f.getenv("GATEWAY_MCP_TOKEN"); len(token) < 16 || strings.ContainsAny(token, " \t\r\n") {
		return errors.New("-http needs a bearer token of at least 16 characters without spaces in GATEWAY_MCP_TOKEN")
	}
	return nil
}

func runMoney(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	f := moneyFlags{getenv: os.Getenv}
	err := f.parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "gateway-mcp money: %v\nRun gateway-mcp money -h for help.\n", err)
		return 2
	}
	if err := f.serve(ctx, stdin, stdout, stderr); err != nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(stderr, "gateway-mcp money: %v\n", err)
		return 1
	}
	return 0
}

func (f *moneyFlags) serve(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	if err := f.checkProfile(); err != nil {
		return err
	}
	c := money.Config{Allow: f.allow, Version: version.Of("gateway-mcp")}
	if err := f.connect(&c); err != nil {
		return err
	}
	defer c.Client.CloseIdleConnections()
	if c.Sealer, err = f.sealer(); err != nil {
		return err
	}
	account := c.Client.Account()
	below := f.clientBelow
	if f.approve == "client" {
		below = math.MaxInt64
	}
	c.Journal, err = intent.Open(f.journal, intent.Config{Account: account.Name + "@" + account.Fingerprint, Limits: f.limits, ClientBelow: below})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Journal.Close()) }()
	written, closeAudit, err := openAudit(f.audit, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAudit()) }()
	c.Audit = written
	s, err := money.NewServer(c)
	if err != nil {
		return err
	}
	if f.http != "" {
		h := httpServer{
			plane: "money", addr: f.http, token: f.getenv("GATEWAY_MCP_TOKEN"), tlsCert: f.tlsCert, tlsKey: f.tlsKey,
			drain: 35 * time.Second, // a request to the gateway may take 30
		}
		return h.serve(ctx, s, stderr)
	}
	return s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(stdin), Writer: stdio{stdout}})
}

// connect sets the clients. The key never comes from an argument, which other users of
// the machine could read.
func (f *moneyFlags) connect(c *money.Config) error {
	key := f.getenv("GATEWAY_API_KEY")
	if f.keyFile != "" {
		text, err := os.ReadFile(f.keyFile)
		if err != nil {
			return fmt.Errorf("-key-file: %w", err)
		}
		key = strings.TrimSpace(string(text))
	}
	if key == "" {
		return errors.New("the gateway's key is missing: set GATEWAY_API_KEY or -key-file")
	}
	var err error
	if c.Client, err = gateway.New(f.url, gateway.BearerToken(key), gateway.WithAccount(f.account)); err != nil {
		return err
	}
	c.Balance, err = legacy.New(c.Client, gateway.NewSecret(key))
	return err
}

func (f *moneyFlags) sealer() (*intent.Sealer, error) {
	key := make([]byte, sha256.Size)
	if f.approvalKey != "" {
		var err error
		if key, err = os.ReadFile(f.approvalKey); err != nil {
			return nil, fmt.Errorf("-approval-key-file: %w", err)
		}
	} else if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return intent.NewSealer(key)
}

// uniqueReferences is the row of docs/assumptions.md that everything rests on.
const uniqueReferences = "empty-reference"

func (f *moneyFlags) checkProfile() error {
	if f.profile == "" {
		return nil
	}
	text, err := os.ReadFile(f.profile)
	if err != nil {
		return fmt.Errorf("-profile: %w", err)
	}
	p, err := gatewayprobe.ReadProfile(text)
	if err != nil {
		return fmt.Errorf("-profile: %w", err)
	}
	if reading := cmp.Or(p.Readings[uniqueReferences], "assumed"); reading != "assumed" {
		return fmt.Errorf("-profile: references are not unique at this gateway (%s is %q), so a repeated payment could be paid twice", uniqueReferences, reading)
	}
	return nil
}

type stdio struct{ io.Writer }

func (stdio) Close() error { return nil }
