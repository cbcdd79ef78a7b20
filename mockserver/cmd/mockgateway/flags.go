package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// config is what the flags say.
type config struct {
	addr     string
	portFile string
	log      string
	options  []mockserver.Option
	seed     string
}

const usage = `mockgateway is a whole payment gateway in memory, for tests and development.

usage: mockgateway [flags]

Without flags it listens on 127.0.0.1:4010 and takes any key that begins with
sk_test_; each key is an account of its own. Its control plane is under
/__mock; docs/mockgateway.md shows a session with curl.

flags:
`

// parse reads the flags. Where done is true the process ends with code.
func parse(args []string, out, errs io.Writer) (cfg config, code int, done bool) {
	var f flags
	set := f.set()
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: there are only flags", set.Arg(0))
	}
	if err == nil {
		cfg, err = f.config()
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, usage)
		set.SetOutput(out)
		set.PrintDefaults()
		return cfg, 0, true
	case err != nil:
		_, _ = fmt.Fprintf(errs, "mockgateway: %v\nmockgateway -h explains the flags\n", err)
		return cfg, 2, true
	}
	return cfg, 0, false
}

// flags are the command line as it is written.
type flags struct {
	addr, portFile, environment, dialect, clock, start, seed, webhook, secret, basicTokenX, allowHosts, data, log string

	loose   bool
	speed   float64
	autoPay time.Duration
	opening int64
	fee     int64
	memory  int64
}

func (f *flags) set() *flag.FlagSet {
	s := flag.NewFlagSet("mockgateway", flag.ContinueOnError)
	s.StringVar(&f.addr, "addr", "127.0.0.1:4010", "`address` to listen on; port 0 takes a free one")
	s.StringVar(&f.portFile, "port-file", "", "`file` that gets host:port once the gateway is ready")
	s.StringVar(&f.environment, "environment", "sandbox", "`sandbox|production`: whose keys are taken, sk_test_… or sk_live_…")
	s.StringVar(&f.dialect, "dialect", "document", "`document|live`: as the interface document says, or as the published gateway answers")
	s.BoolVar(&f.loose, "loose", false, "accept transactions without products or buyer")
	s.StringVar(&f.clock, "clock", "realtime", "`realtime|manual`: whether the virtual clock runs by itself")
	s.Float64Var(&f.speed, "speed", 1, "virtual seconds per second of a realtime clock, at most 1000000")
	s.StringVar(&f.start, "start", "", "first `moment` of the virtual clock, such as 2027-01-04T12:00:00Z; now, if empty")
	s.StringVar(&f.seed, "seed", "", "`number` that makes every id and code repeat")
	s.StringVar(&f.webhook, "webhook", "", "`URL` that gets every webhook of every account")
	s.StringVar(&f.secret, "webhook-secret", "", "`secret` that signs what goes to -webhook")
	s.DurationVar(&f.autoPay, "auto-pay", 0, "pay every pending transaction by itself after this `duration` on the virtual clock, such as 5s")
	s.StringVar(&f.basicTokenX, "basic-token-x", "", "`key` that the literal Basic credential token:x stands for")
	s.Int64Var(&f.opening, "opening-balance", 0, "balance of a new account in `cents`")
	s.Int64Var(&f.fee, "fee", 0, "what the gateway keeps of a payment, in `cents`")
	s.Int64Var(&f.memory, "memory", 2048, "what accounts and records may take, in `MiB`; a write or a new account beyond it is answered with 507")
	s.StringVar(&f.allowHosts, "allow-host", "", "host `names` under which the control plane may be called beside loopback ones, comma-separated; * is any")
	s.StringVar(&f.data, "data", "", "`file` that keeps everything beyond the process")
	s.StringVar(&f.log, "log", "text", "`text|json|off`: how requests are logged to standard error")
	return s
}

// config checks the flags and turns them into options.
func (f *flags) config() (config, error) {
	cfg := config{addr: f.addr, portFile: f.portFile, log: f.log, seed: f.seed}
	add := func(o mockserver.Option) { cfg.options = append(cfg.options, o) }
	for name, given := range map[string][]string{
		"environment": {f.environment, "sandbox", "production"},
		"dialect":     {f.dialect, "document", "live"},
		"clock":       {f.clock, "realtime", "manual"},
		"log":         {f.log, "text", "json", "off"},
	} {
		if !slices.Contains(given[1:], given[0]) {
			return cfg, fmt.Errorf("-%s must be %s, not %q", name, strings.Join(given[1:], " or "), given[0])
		}
	}
	if f.environment == "production" {
		add(mockserver.WithEnvironment(mockserver.Production))
	}
	if f.dialect == "live" {
		add(mockserver.WithDialect(mockserver.Live))
	}
	if f.loose {
		add(mockserver.WithLoose())
	}
	if f.basicTokenX != "" {
		add(mockserver.WithBasicTokenX(f.basicTokenX))
	}
	if f.allowHosts != "" {
		add(mockserver.WithAllowedHosts(strings.Split(f.allowHosts, ",")...))
	}
	if f.data != "" {
		add(mockserver.WithDataFile(f.data))
	}
	for _, check := range []func(func(mockserver.Option)) error{f.time, f.numbers, f.webhooks} {
		if err := check(add); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

func (f *flags) time(add func(mockserver.Option)) error {
	start := time.Now()
	if f.start != "" {
		var err error
		if start, err = time.Parse(time.RFC3339, f.start); err != nil {
			return fmt.Errorf("-start must be a moment such as 2027-01-04T12:00:00Z, not %q", f.start)
		}
	}
	add(mockserver.WithStart(start))
	if f.speed <= 0 || f.speed > 1_000_000 {
		return fmt.Errorf("-speed must be above 0 and at most 1000000, not %v", f.speed)
	}
	if f.clock == "realtime" {
		add(mockserver.WithRealtime(f.speed))
	}
	if f.autoPay < 0 {
		return errors.New("-auto-pay must not be negative")
	}
	add(mockserver.WithAutoPay(f.autoPay))
	return nil
}

func (f *flags) numbers(add func(mockserver.Option)) error {
	if f.seed != "" {
		seed, err := strconv.ParseUint(f.seed, 10, 64)
		if err != nil {
			return fmt.Errorf("-seed must be a whole number from 0, not %q", f.seed)
		}
		add(mockserver.WithSeed(seed))
	}
	if f.memory < 1 || f.fee < 0 {
		return errors.New("-memory must be at least 1, and -fee not negative")
	}
	add(mockserver.WithMemoryLimit(f.memory << 20))
	add(mockserver.WithFee(f.fee))
	add(mockserver.WithOpeningBalance(f.opening))
	return nil
}

func (f *flags) webhooks(add func(mockserver.Option)) error {
	if f.webhook == "" {
		if f.secret != "" {
			return errors.New("-webhook-secret needs -webhook")
		}
		return nil
	}
	u, err := url.Parse(f.webhook)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("-webhook must be an http or https URL, not %q", f.webhook)
	}
	add(mockserver.WithEndpoint(f.webhook, gateway.Secret(f.secret)))
	return nil
}

// writePort writes the address into the file in one step, so that whoever
// waits for the file never reads half of it.
func writePort(file, addr string) error {
	if file == "" {
		return nil
	}
	temporary := file + ".new"
	if err := os.WriteFile(temporary, []byte(addr+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
