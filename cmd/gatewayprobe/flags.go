package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/internal/version"
)

// flags are the parsed command line.
type flags struct {
	config  gatewayprobe.Config
	list    bool
	version bool
	json    string
	listen  string
	profile string
}

const usage = `gatewayprobe tests a gateway's sandbox against docs/assumptions.md: for each row it
sends a few requests and reports whether the gateway agrees or differs, or why the
result is inconclusive. It reads the API key from GATEWAY_API_KEY; there is no flag for it.

usage: GATEWAY_API_KEY=sk_test_… gatewayprobe -base-url https://sandbox.gateway.example [flags]

It creates resources whose references start with "probe-", cancels the transfers and
subscriptions among them, and never uses a key that starts with sk_live_. The exit
code is 0 if the run finished, 1 if it could not start or was interrupted, 2 if the
flags are wrong, and 3 if -profile is given and the gateway differs from it.

flags:
`

// keyVariable is the environment variable with the API key.
const keyVariable = "GATEWAY_API_KEY"

// parse parses the flags. If ended is true, the process must exit with code.
func parse(args []string, getenv func(string) string, out, errs io.Writer) (f flags, code int, ended bool) {
	only := ""
	set := f.set(&only)
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: gatewayprobe takes only flags", set.Arg(0))
	}
	if err == nil && !f.version {
		err = f.check(only, getenv)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, usage)
		set.SetOutput(out)
		set.PrintDefaults()
		return f, done, true
	case err != nil:
		_, _ = fmt.Fprintf(errs, "gatewayprobe: %v\nRun gatewayprobe -h for help.\n", err)
		return f, misused, true
	}
	if f.version {
		_, _ = fmt.Fprintln(out, version.Of("gatewayprobe"))
		return f, done, true
	}
	return f, done, false
}

func (f *flags) set(only *string) *flag.FlagSet {
	s := flag.NewFlagSet("gatewayprobe", flag.ContinueOnError)
	c := &f.config
	s.StringVar(&c.BaseURL, "base-url", "", "`URL` of the sandbox, without a path")
	s.BoolVar(&c.KnownSandbox, "i-know-this-is-a-sandbox", false, "accept a key and a host that don't look like a sandbox's")
	s.BoolVar(&f.version, "version", false, "print the version and exit")
	s.BoolVar(&f.list, "list", false, "list what a run would do without sending anything")
	s.StringVar(&f.json, "json", "", "write a report with every request and response, masked, to this `file`")
	s.StringVar(only, "only", "", "`rows` of docs/assumptions.md to test, comma-separated, such as list-envelope,list-order")
	s.StringVar(&f.profile, "profile", "", "compare the gateway with an earlier report (a `file`), or with live or document (default document)")
	s.StringVar(&c.WebhookURL, "webhook-url", "", "public `URL` that forwards to -listen; without it, webhooks are not tested")
	s.StringVar(&f.listen, "listen", "", "`address` to receive webhooks on, such as :8080")
	s.DurationVar(&c.WebhookWait, "webhook-wait", gatewayprobe.DefaultWebhookWait, "how long to wait for a webhook")
	s.Float64Var(&c.Rate, "rate", gatewayprobe.DefaultRate, "maximum number of requests per second")
	s.IntVar(&c.MaxRequests, "max-requests", gatewayprobe.DefaultMaxRequests, "maximum number of requests in total")
	s.Func("card-token", "`outcome=token`: a card token from the payment element, for the outcome ok, refused or 3ds; may be repeated", func(text string) error {
		outcome, token, found := strings.Cut(text, "=")
		if !found || token == "" || !slices.Contains([]string{"ok", "refused", "3ds"}, outcome) {
			return errors.New("must be ok=…, refused=… or 3ds=…")
		}
		if c.CardTokens == nil {
			c.CardTokens = map[string][]string{}
		}
		c.CardTokens[outcome] = append(c.CardTokens[outcome], token)
		return nil
	})
	return s
}

// check validates the flags, reads the profile and completes the config.
func (f *flags) check(only string, getenv func(string) string) error {
	for id := range strings.SplitSeq(only, ",") {
		if id = strings.TrimSpace(id); id != "" {
			f.config.Only = append(f.config.Only, id)
		}
	}
	for _, id := range f.config.Only {
		if !slices.ContainsFunc(gatewayprobe.Steps(), func(s gatewayprobe.Step) bool { return s.ID == id }) {
			return fmt.Errorf("-only: docs/assumptions.md has no row %q", id)
		}
	}
	if f.list {
		return nil
	}
	f.config.Key = gateway.NewSecret(getenv(keyVariable))
	switch u, err := url.Parse(f.config.WebhookURL); {
	case f.config.BaseURL == "":
		return errors.New("-base-url is missing: set it to the URL of the sandbox")
	case getenv(keyVariable) == "":
		return errors.New(keyVariable + " is not set: set it to an API key of the sandbox")
	case f.config.Rate <= 0, f.config.MaxRequests <= 0, f.config.WebhookWait <= 0:
		return errors.New("-rate, -max-requests and -webhook-wait must be above 0")
	case (f.listen == "") != (f.config.WebhookURL == ""):
		return errors.New("-webhook-url and -listen must be set together: the URL must forward to the address")
	case f.listen != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == ""):
		return errors.New("-webhook-url must be an http or https URL")
	}
	switch f.profile {
	case "", "document":
		return nil
	case "live":
		f.config.Profile = gatewayprobe.LiveProfile()
		return nil
	}
	text, err := os.ReadFile(f.profile)
	if err != nil {
		return fmt.Errorf("-profile: %w", err)
	}
	if f.config.Profile, err = gatewayprobe.ReadProfile(text); err != nil {
		return fmt.Errorf("-profile %s: %w", f.profile, err)
	}
	return nil
}
