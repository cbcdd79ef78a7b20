package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/internal/profile"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/version"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/duration"
	"github.com/gateway-go/gateway/mockserver/internal/gate"
	"github.com/gateway-go/gateway/webhook"
)

// config is the configuration from the flags.
type config struct {
	addr     string
	portFile portFile
	log      log
	console  bool
	manual   bool // the clock
	dialect  string
	options  []mockserver.Option
	memory   int64 // limit in bytes
	seed     string
	seedFile string
	health   bool // check a running gateway instead of starting one
	drain    time.Duration
	tls      certificate

	stopWithStdin bool

	notReproduced []string // rows of the profile that have no setting here
}

const usage = `mockgateway is a complete in-memory payment gateway, for tests and development.

usage: mockgateway [flags]
       mockgateway COMMAND [arguments and flags]

Without flags it listens on 127.0.0.1:4010 and accepts any key that begins with
sk_test_; each key opens its own account. Its control plane is under /__mock;
docs/mockgateway.md shows a session with curl.

examples:
  mockgateway -clock manual            start a gateway whose clock is moved by hand
  mockgateway pay ID                   pay a transaction that your program has created
  mockgateway advance 40d              let time pass, and subscriptions renew
  mockgateway fault lose-response transactions.create -times 1
  mockgateway listen -forward-to localhost:3000/webhooks
`

const flagUsage = `
Flags of serve. Each can also be set by the environment variable next to it. The flag
takes precedence; an empty variable counts as not set. Durations use Go's syntax
plus days: 90m, 12h, 40d.
`

// parse reads the flags and the environment. If done is true the process exits
// with code.
func parse(args, environ []string, out, errs io.Writer) (cfg config, code int, done bool) {
	f := flags{from: map[string]string{}}
	set := f.set()
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	if err == nil && set.NArg() > 0 {
		err = unexpected(set.Arg(0))
	}
	if err == nil && !f.version {
		var unknown []string
		unknown, err = f.environ(set, environ)
		for _, name := range unknown {
			if !f.health { // the gateway itself warns
				log{form: f.log}.note(errs, noteWarning, "warning: "+name+" is not a setting; mockgateway -h lists them")
			}
		}
	}
	if err == nil && !f.version {
		cfg, err = f.config()
		cfg.log.color = colored(errs, environ)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, usage)
		listCommands(out)
		_, _ = io.WriteString(out, flagUsage)
		explainGroups(out, set)
		return cfg, 0, true
	case err != nil:
		log{form: f.log}.note(errs, noteError, err.Error()+"\nRun mockgateway -h for help.")
		return cfg, 2, true
	case f.version:
		_, _ = fmt.Fprintln(out, version.Of("mockgateway"))
		return cfg, 0, true
	}
	return cfg, 0, false
}

func unexpected(arg string) error {
	if _, err := strconv.ParseBool(arg); err == nil {
		return fmt.Errorf("unexpected argument %q: write the value of such a flag after =, as in -console=false", arg)
	}
	return fmt.Errorf("unexpected argument %q: a command must be the first argument, and the gateway takes only flags", arg)
}

// explain writes what a flag does, its default, and what follows its name, such as the
// variable that sets it.
func explain(out io.Writer, f *flag.Flag, after string) {
	value, text := flag.UnquoteUsage(f)
	head := strings.TrimRight("  -"+f.Name+" "+value, " ") + after
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
		text += " (default " + f.DefValue + ")"
	}
	_, _ = fmt.Fprintf(out, "%s\n        %s\n", head, text)
}

// flagGroups are the groups of flags in the help. A test checks that each flag is in one.
func flagGroups() [][]string {
	return [][]string{
		{"Address and process", "addr", "port-file", "tls-self-signed", "tls-cert", "tls-key", "allow-host", "cors", "public-url", "drain", "stop-with-stdin", healthFlag, versionFlag},
		{"Which gateway it is", "environment", "dialect", "profile", "lenient", "basic-token-x", "auto-pay", "opening-balance", "fee", "settled-percent"},
		{"Clock and ids", "clock", "start", "speed", "seed"},
		{"Webhooks", "webhook", "webhook-secret", "webhook-timeout", "webhook-retries", "webhook-pause-after", "webhook-insecure", "timestamp-header", "signature-header"},
		{"State", "data", "seed-file", "memory"},
		{"Output", "log", "console"},
	}
}

// explainGroups writes what the flags do, in their groups.
func explainGroups(out io.Writer, set *flag.FlagSet) {
	for _, group := range flagGroups() {
		_, _ = fmt.Fprintf(out, "\n%s:\n", group[0])
		for _, name := range group[1:] {
			after := ""
			if !isCommand(name) {
				after = "  (" + variable(name) + ")"
			}
			explain(out, set.Lookup(name), after)
		}
	}
}

// flags are the unparsed values of the command line.
type flags struct {
	addr, portFile, environment, dialect, clock, start, seed, webhook, secret, basicTokenX, allowHosts, data, seedFile, log, profile, publicURL, cors string

	timestampHeader, signatureHeader string

	lenient bool
	console bool
	stdin   bool
	version bool
	health  bool
	speed   float64
	settled float64
	autoPay time.Duration
	drain   time.Duration

	tls             certificate
	webhookTimeout  time.Duration
	webhookRetries  string
	webhookInsecure bool
	pauseAfter      int64
	opening         int64
	fee             int64
	memory          int64

	// from names the source of a flag's value, if that is not the command line.
	from map[string]string
}

// variable returns the environment variable that sets a flag.
func variable(name string) string {
	return variables + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

const (
	variables   = "MOCKGATEWAY_"
	versionFlag = "version"
	healthFlag  = "health"
)

// isCommand reports whether a flag is a command rather than a setting. It has no
// variable: MOCKGATEWAY_VERSION may be the version of the image.
func isCommand(name string) bool { return name == versionFlag || name == healthFlag }

// environ sets the flags that the command line did not set. A variable that sets
// no flag is only returned, for a warning: Kubernetes sets some for a service of this
// name.
func (f *flags) environ(set *flag.FlagSet, environ []string) (unknown []string, err error) {
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	known := map[string]*flag.Flag{}
	set.VisitAll(func(f *flag.Flag) {
		if !isCommand(f.Name) {
			known[variable(f.Name)] = f
		}
	})
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		target := known[name]
		switch {
		case !strings.HasPrefix(name, variables) || value == "":
		case target == nil:
			unknown = append(unknown, name)
		case !given[target.Name]:
			if err := set.Set(target.Name, value); err != nil {
				if isBool(target) {
					return unknown, fmt.Errorf("%s must be true or false, not %q", name, value)
				}
				return unknown, fmt.Errorf("%s: invalid value %q: %w", name, value, err)
			}
			f.from[target.Name] = name
		}
	}
	return unknown, nil
}

// isBool reports whether a flag needs no value on the command line.
func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// name returns how the user wrote a flag: "-speed", or the variable.
func (f *flags) name(of string) string { return cmp.Or(f.from[of], "-"+of) }

func (f *flags) set() *flag.FlagSet {
	s := flag.NewFlagSet("mockgateway", flag.ContinueOnError)
	f.memory = 2048
	s.StringVar(&f.addr, "addr", defaultAddr, "`address` to listen on; with port 0, the system chooses a free port")
	s.StringVar(&f.portFile, "port-file", "", "`file` to write host:port to once the gateway is ready; removed at startup and on exit")
	f.drain = defaultDrain
	s.Var((*durationValue)(&f.drain), "drain", "`duration`, in wall time, that Ctrl-C and SIGTERM wait for running requests and webhooks")
	s.BoolVar(&f.stdin, "stop-with-stdin", false, "stop at the end of standard input, so that the gateway ends with the program that holds its other end")
	s.StringVar(&f.tls.cert, "tls-cert", "", "PEM `file` with a certificate: serve HTTPS with it and with -tls-key")
	s.StringVar(&f.tls.key, "tls-key", "", "PEM `file` with the private key of -tls-cert")
	s.StringVar(&f.tls.selfSigned, "tls-self-signed", "", "serve HTTPS with a new certificate for localhost and the names of -allow-host, and write it to this PEM `file`, for clients to trust")
	s.StringVar(&f.environment, "environment", "sandbox", "`sandbox|production`: which keys are accepted, sk_test_… or sk_live_…")
	s.StringVar(&f.dialect, "dialect", "document", "`document|live`: respond as the interface document says, or as live gateways do")
	s.StringVar(&f.profile, "profile", "", "gatewayprobe report `file`: respond as the probed gateway does, instead of -dialect, -lenient, -fee and -settled-percent")
	s.BoolVar(&f.lenient, "lenient", false, "accept transactions without products or buyer")
	s.StringVar(&f.clock, "clock", "realtime", "`realtime|manual`: whether the virtual clock runs by itself")
	s.Float64Var(&f.speed, "speed", 1, "virtual seconds per second of a realtime clock, at most 1000000")
	s.StringVar(&f.start, "start", "", "start `time` of the virtual clock, such as 2027-01-04T12:00:00Z; empty means now")
	s.StringVar(&f.seed, "seed", "", "`number` that makes ids and codes reproducible")
	s.StringVar(&f.webhook, "webhook", "", "`URL` that gets every webhook of every account")
	s.StringVar(&f.secret, "webhook-secret", "", "`secret` that signs the webhooks sent to -webhook")
	s.Var((*durationValue)(&f.webhookTimeout), "webhook-timeout", "`duration`, in wall time, that a receiver may take to respond; empty means 10s")
	s.StringVar(&f.webhookRetries, "webhook-retries", "", "comma-separated `times` of the retries of a webhook after its first attempt, such as 5s,5m,1h, or none; empty means those of the interface, until 24h")
	s.Var((*wholeValue)(&f.pauseAfter), "webhook-pause-after", "pause an endpoint after this `number` of attempts in a row have failed")
	s.BoolVar(&f.webhookInsecure, "webhook-insecure", false, "accept every TLS certificate of a receiver, such as a self-signed one")
	s.StringVar(&f.timestampHeader, "timestamp-header", webhook.DefaultTimestampHeader, "`name` of the header with the timestamp of signed webhooks")
	s.StringVar(&f.signatureHeader, "signature-header", webhook.DefaultSignatureHeader, "`name` of the header with the signature of signed webhooks")
	s.Var((*durationValue)(&f.autoPay), "auto-pay", "pay every pending transaction automatically after this `duration` on the virtual clock, such as 5s")
	s.StringVar(&f.basicTokenX, "basic-token-x", "", "`key` to use for the literal Basic credential token:x")
	s.Var((*wholeValue)(&f.opening), "opening-balance", "balance of a new account in `cents`")
	s.Var((*wholeValue)(&f.fee), "fee", "fee per payment in `cents`")
	s.Float64Var(&f.settled, "settled-percent", 0, "report in the amount of a transaction what the gateway settles: this `percentage` of what the buyer is charged; needs the live dialect")
	s.Var((*wholeValue)(&f.memory), "memory", "memory limit in `MiB` for accounts, deliveries and the journal; beyond it, writes and new accounts get a 507")
	s.BoolVar(&f.console, "console", true, "serve the console to browsers, at / and under /__mock/console; -console=false disables it")
	s.StringVar(&f.allowHosts, "allow-host", "", "comma-separated host `names` that requests may use besides localhost and IP addresses; * allows any")
	s.StringVar(&f.cors, "cors", "", "comma-separated `origins` whose pages may call the gateway from scripts, such as http://localhost:5173; * is any, but not for the control plane")
	s.StringVar(&f.publicURL, "public-url", "", "`URL` at which buyers reach the gateway, for checkout links; empty means the address that the client used")
	s.StringVar(&f.seedFile, "seed-file", "", "JSON `file` with customers, payments and subscriptions to start with; not applied if -data already has resources")
	s.StringVar(&f.data, "data", "", "`file` that keeps the state across restarts")
	s.BoolVar(&f.health, healthFlag, false, "check whether the gateway at -addr is ready, and exit with 0 if it is; for a container's health check")
	s.BoolVar(&f.version, versionFlag, false, "print the version and exit")
	s.StringVar(&f.log, "log", "text", "`text|json|off`: how requests, status changes, timers, faults and webhooks are logged to standard error")
	return s
}

// config checks the flags and turns them into options.
func (f *flags) config() (config, error) {
	cfg := config{
		addr: f.addr, health: f.health, portFile: portFile(f.portFile), log: log{form: f.log}, console: f.console,
		manual: f.clock == "manual", memory: f.memory << 20, seed: f.seed,
		drain: f.drain, tls: f.tls, stopWithStdin: f.stdin,
	}
	add := func(o mockserver.Option) { cfg.options = append(cfg.options, o) }
	for name, given := range map[string][]string{
		"environment": {f.environment, "sandbox", "production"},
		"dialect":     {f.dialect, "document", "live"},
		"clock":       {f.clock, "realtime", "manual"},
		"log":         {f.log, "text", "json", "off"},
	} {
		if !slices.Contains(given[1:], given[0]) {
			return cfg, fmt.Errorf("%s must be %s, not %q", f.name(name), strings.Join(given[1:], " or "), given[0])
		}
	}
	switch {
	case (f.tls.cert == "") != (f.tls.key == ""):
		return cfg, fmt.Errorf("%s and %s must be set together", f.name("tls-cert"), f.name("tls-key"))
	case f.tls.cert != "" && f.tls.selfSigned != "":
		return cfg, fmt.Errorf("%s and %s can't both be set", f.name("tls-cert"), f.name("tls-self-signed"))
	}
	if f.drain < 0 {
		return cfg, fmt.Errorf("%s must not be negative", f.name("drain"))
	}
	if err := checkAddr(f.addr); err != nil {
		return cfg, fmt.Errorf("%s must be host:port, such as 127.0.0.1:4010: %w", f.name("addr"), err)
	}
	if f.environment == "production" {
		add(mockserver.WithProduction())
	}
	if err := f.readings(&cfg); err != nil {
		return cfg, err
	}
	add(mockserver.WithConsole(f.console))
	headers := webhook.HeaderNames{Timestamp: f.timestampHeader, Signature: f.signatureHeader}
	if err := deliver.CheckHeaders(headers); err != nil {
		return cfg, fmt.Errorf("%s or %s: %w", f.name("timestamp-header"), f.name("signature-header"), err)
	}
	add(mockserver.WithSignatureHeaders(headers))
	if f.basicTokenX != "" {
		add(mockserver.WithBasicTokenX(f.basicTokenX))
	}
	if f.allowHosts != "" {
		names := strings.Split(f.allowHosts, ",")
		for i, name := range names {
			names[i] = strings.TrimSpace(name)
			if names[i] == "" || strings.ContainsAny(names[i], "/: ") {
				return cfg, fmt.Errorf("%s must be host names without scheme, port and path, such as gateway.test, not %q", f.name("allow-host"), name)
			}
		}
		add(mockserver.WithAllowedHosts(names...))
		cfg.tls.names = names
	}
	if f.cors != "" {
		origins := strings.Split(f.cors, ",")
		for i := range origins {
			origins[i] = strings.TrimSpace(origins[i])
		}
		if err := gate.CheckOrigins(origins); err != nil {
			return cfg, fmt.Errorf("%s: %w", f.name("cors"), err)
		}
		add(mockserver.WithCORS(origins...))
	}
	if f.publicURL != "" {
		if err := deliver.CheckURL(f.publicURL); err != nil {
			return cfg, fmt.Errorf("%s: %w", f.name("public-url"), err)
		}
		add(mockserver.WithPublicURL(f.publicURL))
	}
	if f.data != "" && samePath(f.data, f.portFile) {
		return cfg, fmt.Errorf("%s and %s must be two files", f.name("data"), f.name("port-file"))
	}
	if f.data != "" {
		add(mockserver.WithDataFile(f.data))
	}
	if cfg.seedFile = f.seedFile; f.seedFile != "" {
		add(mockserver.WithSeedFile(f.seedFile))
	}
	for _, check := range []func(func(mockserver.Option)) error{f.time, f.numbers, f.webhooks} {
		if err := check(add); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// checkAddr checks an address to listen on.
func checkAddr(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil && port != "0" && !spec.IsPort(port) {
		err = fmt.Errorf("%s is not a port", port)
	}
	return err
}

// readings sets the dialect, or the rows of a profile.
func (f *flags) readings(cfg *config) error {
	add := func(o mockserver.Option) { cfg.options = append(cfg.options, o) }
	cfg.dialect = f.dialect
	if f.dialect == "live" {
		add(mockserver.WithDialect(mockserver.Live))
	}
	if f.lenient {
		add(mockserver.WithLenient())
	}
	if f.profile == "" {
		return nil
	}
	if f.dialect != "document" || f.lenient || f.fee != 0 || f.settled != 0 {
		return fmt.Errorf("%s sets the dialect, the leniency, the fee and what is settled: remove %s, %s, %s or %s",
			f.name("profile"), f.name("dialect"), f.name("lenient"), f.name("fee"), f.name("settled-percent"))
	}
	text, err := os.ReadFile(f.profile)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name("profile"), err)
	}
	report, err := gatewayprobe.ReadProfile(text)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.name("profile"), f.profile, err)
	}
	set, _, err := profile.Read(report.Readings)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.name("profile"), f.profile, err)
	}
	cfg.dialect, cfg.notReproduced = set.Dialect.String(), report.NotReproduced()
	add(mockserver.WithProfile(text))
	return nil
}

func (f *flags) time(add func(mockserver.Option)) error {
	start := time.Now()
	if f.start != "" {
		var err error
		if start, err = time.Parse(time.RFC3339, f.start); err != nil {
			return fmt.Errorf("%s must be a time such as 2027-01-04T12:00:00Z, not %q", f.name("start"), f.start)
		}
	}
	add(mockserver.WithStart(start))
	if !(f.speed > 0 && f.speed <= 1_000_000) { // so that NaN is rejected too
		return fmt.Errorf("%s must be above 0 and at most 1000000, not %v", f.name("speed"), f.speed)
	}
	switch {
	case f.clock == "realtime":
		add(mockserver.WithRealtime(f.speed))
	case f.speed != 1:
		return fmt.Errorf("%s has no effect with %s=manual: remove one of them", f.name("speed"), f.name("clock"))
	}
	if f.autoPay < 0 {
		return fmt.Errorf("%s must not be negative", f.name("auto-pay"))
	}
	add(mockserver.WithAutoPay(f.autoPay))
	return nil
}

func (f *flags) numbers(add func(mockserver.Option)) error {
	if f.seed != "" {
		seed, err := strconv.ParseUint(f.seed, 10, 64)
		if err != nil {
			return fmt.Errorf("%s must be a whole number from 0, not %q", f.name("seed"), f.seed)
		}
		add(mockserver.WithSeed(seed))
	}
	if f.memory < 1 || f.memory > math.MaxInt64>>20 {
		return fmt.Errorf("%s must be at least 1 and at most %d, not %d", f.name("memory"), int64(math.MaxInt64>>20), f.memory)
	}
	if f.fee < 0 {
		return fmt.Errorf("%s must not be negative", f.name("fee"))
	}
	add(mockserver.WithMemoryLimit(f.memory << 20))
	if f.profile == "" {
		add(mockserver.WithFee(f.fee))
	}
	add(mockserver.WithOpeningBalance(f.opening))
	if f.settled == 0 {
		return nil
	}
	if !(f.settled > 0 && f.settled < 100) || math.Abs(math.Round(f.settled*100)-f.settled*100) > 1e-6 { // so that NaN is rejected too
		return fmt.Errorf("%s must be above 0 and below 100, with at most two decimals, not %v", f.name("settled-percent"), f.settled)
	}
	if f.dialect != "live" {
		return fmt.Errorf("%s needs %s=live", f.name("settled-percent"), f.name("dialect"))
	}
	add(mockserver.WithSettledPercent(f.settled))
	return nil
}

func (f *flags) webhooks(add func(mockserver.Option)) error {
	if err := f.attempts(add); err != nil {
		return err
	}
	if f.webhook == "" {
		if f.secret != "" {
			return fmt.Errorf("%s needs -webhook", f.name("webhook-secret"))
		}
		return nil
	}
	if deliver.CheckURL(f.webhook) != nil {
		return fmt.Errorf("%s must be an http or https URL", f.name("webhook")) // which may contain a secret
	}
	if err := deliver.CheckSecret(gateway.NewSecret(f.secret)); err != nil {
		return fmt.Errorf("%s: %w", f.name("webhook-secret"), err)
	}
	add(mockserver.WithEndpoint(f.webhook, gateway.NewSecret(f.secret)))
	return nil
}

// attempts sets how webhooks are attempted.
func (f *flags) attempts(add func(mockserver.Option)) error {
	if f.webhookTimeout < 0 {
		return fmt.Errorf("%s must not be negative", f.name("webhook-timeout"))
	}
	if f.pauseAfter < 0 || f.pauseAfter > math.MaxInt32 {
		return fmt.Errorf("%s must not be negative", f.name("webhook-pause-after"))
	}
	add(mockserver.WithWebhookTimeout(f.webhookTimeout))
	add(mockserver.WithEndpointPause(int(f.pauseAfter)))
	if f.webhookInsecure {
		add(mockserver.WithAnyCertificate())
	}
	if f.webhookRetries == "" {
		return nil
	}
	var after []time.Duration
	if f.webhookRetries != "none" {
		for text := range strings.SplitSeq(f.webhookRetries, ",") {
			at, err := duration.Parse(strings.TrimSpace(text))
			if err != nil {
				return fmt.Errorf("%s must be durations such as 5s,5m,1h, or none: %w", f.name("webhook-retries"), err)
			}
			after = append(after, at)
		}
	}
	if err := deliver.CheckRetries(after); err != nil {
		return fmt.Errorf("%s: %w", f.name("webhook-retries"), err)
	}
	add(mockserver.WithWebhookRetries(after...))
	return nil
}

// wholeValue is a flag.Value of a whole number. That of package flag only
// reports a "parse error".
type wholeValue int64

func (n *wholeValue) Set(text string) error {
	parsed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("it must be a whole number")
	}
	*n = wholeValue(parsed)
	return nil
}

func (n *wholeValue) String() string { return strconv.FormatInt(int64(*n), 10) }

// durationValue is a flag.Value of a duration that may be in days.
type durationValue time.Duration

func (d *durationValue) Set(text string) error {
	parsed, err := duration.Parse(text)
	*d = durationValue(parsed)
	return err
}

func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}
