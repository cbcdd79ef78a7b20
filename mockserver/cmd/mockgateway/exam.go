package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/exam/outside"
	"github.com/gateway-go/gateway/internal/exam/report"
	"github.com/gateway-go/gateway/internal/version"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
)

const examUsage = `mockgateway exam starts your program with the mock as its gateway, plays orders with
faults, and compares what the program reports with what the gateway has.

usage: mockgateway exam [flags] -- COMMAND [ARGS]
       mockgateway exam [flags] -url URL -addr ADDRESS -key KEY -secret SECRET
       mockgateway exam -list

The program gets these variables: EXAM=1, PORT (where it must listen on 127.0.0.1),
GATEWAY_BASE_URL, GATEWAY_API_KEY, GATEWAY_WEBHOOK_SECRET, and EXAM_DATA_DIR (a folder
that survives restarts). It serves the hooks of docs/exam.md: at least POST /exam/orders
and GET /exam/orders/{id}.

exit codes:
  0  nothing failed
  1  a claim failed, or with -strict there is a warning
  2  a flag is wrong, or the program could not be started or speaks another protocol
  3  nothing failed, but a scenario was not run, or none passed

flags:
`

// examFlags are the unparsed values of the command line.
type examFlags struct {
	list, verbose, strict         bool
	only, skip, seed              string
	junit, html, json             string
	dialect, profile              string
	url, addr, key, secret, path  string
	env                           variableValue
	budget, grace, hang, starting time.Duration
	random                        time.Duration

	command []string
}

func (f *examFlags) set() *flag.FlagSet {
	s := flag.NewFlagSet("mockgateway exam", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	f.env = variableValue{}
	f.budget, f.grace, f.hang, f.starting = 3*time.Minute, 3*time.Second, 3*time.Second, 30*time.Second
	s.BoolVar(&f.list, "list", false, "list the scenarios with their claims and the hooks that they need, and run nothing")
	s.StringVar(&f.only, "only", "", "comma-separated `names` of scenarios or claims: run only these")
	s.StringVar(&f.skip, "skip", "", "comma-separated `names` of scenarios or claims: don't run these")
	s.StringVar(&f.seed, "seed", "", "`number` that repeats the ids, amounts and times of an exam; empty means a random one, which is printed")
	s.Var((*durationValue)(&f.random), "random", "after the scenarios, play random ones from the seed for this `duration`, such as 5m")
	s.StringVar(&f.junit, "junit", "", "write JUnit XML for CI systems to this `file`: a test case for each scenario")
	s.StringVar(&f.html, "html", "", "write one HTML page to this `file`: each failure with its exchange and both sides' books")
	s.StringVar(&f.json, "json", "", "write the whole result as JSON to this `file`")
	s.StringVar(&f.dialect, "dialect", "document", "`document|live`: respond as the interface document says, or as live gateways do")
	s.StringVar(&f.profile, "profile", "", "gatewayprobe report `file`: respond as the probed gateway does, instead of -dialect")
	s.BoolVar(&f.verbose, "v", false, "show the program's output on standard error, without the key and the secret")
	s.BoolVar(&f.strict, "strict", false, "exit with 1 if there is a warning")
	s.Var((*durationValue)(&f.budget), "budget", "`duration` after which no scenario is begun any more")
	s.Var((*durationValue)(&f.grace), "grace", "`duration` that a program without the hook tick gets to put its orders right")
	s.Var((*durationValue)(&f.hang), "hang", "`duration` that the gateway does not respond in the scenario hang; set it above your client's timeout")
	s.Var((*durationValue)(&f.starting), "start-timeout", "`duration` that the program may take after a start until it responds to HTTP requests")
	s.StringVar(&f.path, "webhook-path", "/webhooks", "`path` of the program's webhooks")
	s.Var(f.env, "env", "`NAME=VALUE`: one more variable of the program, in which {base_url}, {key}, {secret}, {port} and {dir} are replaced; may be repeated")
	s.StringVar(&f.url, "url", "", "http `URL` of a program that runs already; needs -addr, -key and -secret, and skips the scenarios that restart it")
	s.StringVar(&f.addr, "addr", "", "`address` of the gateway; empty means a free port")
	s.StringVar(&f.key, "key", "", "the program's API `key`, which begins with sk_test_; empty means a new one")
	s.StringVar(&f.secret, "secret", "", "`secret` that signs the webhooks; empty means a new one")
	return s
}

// variableValue is a flag.Value of variables of the environment.
type variableValue map[string]string

func (v variableValue) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("it must be NAME=VALUE")
	}
	if strings.ContainsRune(text, 0) {
		return errors.New("it must not contain a zero byte")
	}
	v[name] = value
	return nil
}

func (v variableValue) String() string { return "" }

// examine is the command exam. It returns the exit code.
func examine(ctx context.Context, args, environ []string, out, errs io.Writer) int {
	var f examFlags
	set := f.set()
	err := set.Parse(args)
	f.command = set.Args()
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(out, examUsage)
		set.VisitAll(func(f *flag.Flag) { explain(out, f, "") })
		return 0
	}
	var e *examination
	if err == nil {
		e, err = f.config(set)
	}
	if err != nil {
		log{}.note(errs, noteError, err.Error()+"\nRun mockgateway exam -h for help.")
		return 2
	}
	if f.list {
		list(out, e.Scenarios)
		return 0
	}
	e.text = &report.Text{
		To: out, Total: len(e.Scenarios), Progress: !f.verbose && terminal(out, environ), Color: colored(out, environ),
		Report: report.Report{Result: &exam.Result{Seed: e.Seed, Command: e.mask.Texts(e.Command)}, Flags: e.flags, Strict: f.strict},
	}
	return e.run(ctx, out, errs)
}

// examination is an exam with its reports.
type examination struct {
	outside.Config
	flags   []string // to repeat it
	dialect string
	ignored []string // rows of the profile
	mask    report.Mask
	verbose bool
	files   []*reportFile
	text    *report.Text
}

// config checks the flags.
func (f *examFlags) config(set *flag.FlagSet) (*examination, error) {
	e := &examination{
		Config: outside.Config{
			Command: f.command, URL: f.url, Env: f.env, Addr: f.addr, Key: f.key, Secret: f.secret, Path: f.path,
			Budget: f.budget, Grace: f.grace, Hang: f.hang, StartTimeout: f.starting, Random: f.random,
		},
		dialect: f.dialect, verbose: f.verbose,
	}
	for _, step := range []func(*examination) error{f.scenarios, f.durations, f.readings, f.reports} {
		if err := step(e); err != nil {
			return nil, err
		}
	}
	if !f.list {
		if err := f.program(); err != nil {
			return nil, err
		}
	}
	if f.seed == "" {
		e.Seed = rand.Uint64N(1e6) //nolint:gosec // easy to type again
	} else {
		var err error
		if e.Seed, err = strconv.ParseUint(f.seed, 10, 64); err != nil {
			return nil, fmt.Errorf("-seed must be a whole number from 0, not %q", f.seed)
		}
	}
	e.Key, e.Secret = cmp.Or(e.Key, fmt.Sprintf("sk_test_exam_%016x", rand.Uint64())), cmp.Or(e.Secret, fmt.Sprintf("whsec_%016x%016x", rand.Uint64(), rand.Uint64())) //nolint:gosec // of a mock gateway
	e.mask = report.NewMask(e.Key, e.Secret)
	e.flags = e.mask.Texts(f.again(set))
	return e, nil
}

func (f *examFlags) scenarios(e *examination) error {
	only, skip := names(f.only), names(f.skip)
	if _, err := exam.Scenarios(only, nil); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	var err error
	if e.Scenarios, err = exam.Scenarios(only, skip); err != nil {
		return fmt.Errorf("-skip: %w", err)
	}
	if len(e.Scenarios) == 0 {
		return errors.New("-only and -skip leave no scenario")
	}
	return nil
}

// names splits a comma-separated list.
func names(text string) (list []string) {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			list = append(list, name)
		}
	}
	return list
}

func (f *examFlags) durations(*examination) error {
	for name, d := range map[string]time.Duration{"budget": f.budget, "hang": f.hang, "start-timeout": f.starting} {
		if d <= 0 {
			return fmt.Errorf("-%s must be above 0", name)
		}
	}
	for name, d := range map[string]time.Duration{"grace": f.grace, "random": f.random} {
		if d < 0 {
			return fmt.Errorf("-%s must not be negative", name)
		}
	}
	return nil
}

// readings sets the dialect, as for the gateway itself.
func (f *examFlags) readings(e *examination) error {
	switch {
	case f.dialect != "document" && f.dialect != "live":
		return fmt.Errorf("-dialect must be document or live, not %q", f.dialect)
	case f.profile != "" && f.dialect != "document":
		return errors.New("-profile sets the dialect: remove -dialect")
	case f.profile != "":
		e.dialect = "profile " + f.profile
	}
	var cfg config
	err := (&flags{dialect: f.dialect, profile: f.profile}).readings(&cfg)
	e.Options, e.ignored = cfg.options, cfg.notReproduced
	return err
}

// program checks what says how the program and the gateway reach each other.
func (f *examFlags) program() error {
	switch {
	case f.url != "" && len(f.command) > 0:
		return errors.New("-url is for a program that runs already: remove it or the command")
	case f.url == "" && len(f.command) == 0:
		return errors.New("a command that starts the program is missing, as in mockgateway exam -- python3 shop.py; or set -url")
	case f.url != "":
		if err := f.running(); err != nil {
			return err
		}
	}
	if u, err := url.Parse(f.path); err != nil || !strings.HasPrefix(f.path, "/") || u.Host != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("-webhook-path must be a path such as /webhooks, not %q", f.path)
	}
	if err := checkAddr(f.addr); f.addr != "" && err != nil {
		return fmt.Errorf("-addr must be host:port, such as 127.0.0.1:4010: %w", err)
	}
	if rest, ok := strings.CutPrefix(f.key, "sk_test_"); f.key != "" && (!ok || rest == "" || strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r > '~' })) {
		return errors.New("-key must begin with sk_test_ and have more printable characters without spaces")
	}
	if err := deliver.CheckSecret(gateway.NewSecret(f.secret)); err != nil {
		return fmt.Errorf("-secret: %w", err)
	}
	return nil
}

// running checks the flags for a program that runs already.
func (f *examFlags) running() error {
	u, err := url.Parse(f.url)
	if err != nil || u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New("-url must be http://host:port without a path")
	}
	for name, value := range map[string]string{"addr": f.addr, "key": f.key, "secret": f.secret} {
		if value == "" {
			return fmt.Errorf("-url needs -%s: the program runs already, so it must have been told", name)
		}
	}
	if len(f.env) > 0 {
		return errors.New("-env has no effect with -url: remove one of them")
	}
	return nil
}

// again returns the flags that repeat an exam, besides the scenarios and the seed.
func (f *examFlags) again(set *flag.FlagSet) (args []string) {
	set.Visit(func(g *flag.Flag) {
		switch g.Name {
		case "list", "only", "skip", "seed", "random", "junit", "html", "json", "v", "strict", "budget":
		case "env":
			for _, name := range slices.Sorted(maps.Keys(f.env)) {
				args = append(args, "-env", name+"="+f.env[name])
			}
		default:
			args = append(args, "-"+g.Name, g.Value.String())
		}
	})
	return args
}

// run runs the exam and writes its reports.
func (e *examination) run(ctx context.Context, out, errs io.Writer) int {
	commit := commitOf(ctx)
	for _, file := range e.files {
		if err := file.open(); err != nil {
			e.close()
			log{}.note(errs, noteError, err.Error())
			return 2
		}
	}
	defer e.close()
	if len(e.ignored) > 0 {
		log{}.note(errs, noteWarning, "the profile is ignored in rows that have no setting: "+strings.Join(e.ignored, ", "))
	}
	if e.verbose {
		lines := e.mask.Writer(errs)
		defer lines.Flush()
		e.Output = lines
	}
	e.Started = e.text.Started
	e.Ended = func(o exam.Outcome) { e.text.Ended(e.mask.Outcome(o)) }
	plural := "s"
	if len(e.Scenarios) == 1 {
		plural = ""
	}
	_, _ = fmt.Fprintf(out, "%d scenario%s, seed %d\n", len(e.Scenarios), plural, e.Seed)
	result, err := outside.Run(ctx, e.Config)
	if err != nil {
		return e.notStarted(ctx, err, errs)
	}
	e.mask.Result(result)
	result.Version, result.Commit, result.Dialect = version.Of("mockgateway"), commit, e.dialect
	e.text.Report.Result = result
	e.text.Finish()
	code := e.text.Report.Code()
	for _, file := range e.files {
		if err := file.write(e.text.Report); err != nil {
			log{}.note(errs, noteError, err.Error())
			code = cmp.Or(code, 2)
		}
	}
	return code
}

// notStarted says why there is no result.
func (e *examination) notStarted(ctx context.Context, err error, errs io.Writer) int {
	if ctx.Err() != nil {
		log{}.note(errs, noteError, "the exam was ended before the program was ready")
		return report.Incomplete
	}
	text := e.mask.Text(err.Error())
	var listen *net.OpError
	if errors.As(err, &listen) && listen.Op == "listen" {
		text = "-addr: " + text
	}
	var start *outside.StartError
	if errors.As(err, &start) {
		where := ""
		if e.URL != "" {
			where = " at " + e.URL
		}
		text = "the program" + where + " can't be examined: " + text
		if printed := report.Lines(e.mask.Text(start.Output)); printed != "" && !e.verbose {
			text += "\nThe end of what it printed:\n    " + strings.ReplaceAll(printed, "\n", "\n    ")
		}
	}
	log{}.note(errs, noteError, text)
	return 2
}

func (e *examination) close() {
	for _, file := range e.files {
		file.close()
	}
}

// reports lists the files of -junit, -html and -json.
func (f *examFlags) reports(e *examination) error {
	seen := map[string]string{}
	for _, file := range []*reportFile{
		{flag: "-junit", name: f.junit, content: report.Report.JUnit},
		{flag: "-html", name: f.html, content: report.Report.HTML},
		{flag: "-json", name: f.json, content: report.Report.JSON},
	} {
		if file.name == "" {
			continue
		}
		if other := seen[filepath.Clean(file.name)]; other != "" {
			return fmt.Errorf("%s and %s must be two files", other, file.flag)
		}
		seen[filepath.Clean(file.name)] = file.flag
		e.files = append(e.files, file)
	}
	return nil
}

// reportFile is opened before the exam, so that an exam is not played for a report that
// can't be written, and an old report is not taken for the new one.
type reportFile struct {
	flag, name string
	content    func(report.Report, io.Writer) error
	file       *os.File
	written    bool
}

func (r *reportFile) open() (err error) {
	if r.file, err = os.Create(r.name); err != nil {
		return fmt.Errorf("%s: %w", r.flag, err)
	}
	return nil
}

func (r *reportFile) write(result report.Report) error {
	if err := errors.Join(r.content(result, r.file), r.file.Close()); err != nil {
		return fmt.Errorf("%s: %w", r.flag, err)
	}
	r.written = true
	return nil
}

// close removes a report that was not written.
func (r *reportFile) close() {
	if r.file == nil || r.written {
		return
	}
	info, err := r.file.Stat()
	_ = r.file.Close()
	if err == nil && info.Mode().IsRegular() {
		_ = os.Remove(r.name)
	}
}

// commitOf returns the commit of the working directory, or "" if it is not in a git
// work tree.
func commitOf(ctx context.Context) string {
	const limit = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	git := func(args ...string) (string, error) {
		text, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // the arguments are those below
		return strings.TrimSpace(string(text)), err
	}
	commit, err := git("rev-parse", "--verify", "HEAD")
	if err != nil {
		return ""
	}
	if changes, err := git("status", "--porcelain"); err != nil || changes != "" {
		commit += "+changes"
	}
	return commit
}

// list prints the scenarios.
func list(out io.Writer, scenarios []*exam.Scenario) {
	for _, s := range scenarios {
		claims, needs := make([]string, len(s.Claims)), "-"
		for i, c := range s.Claims {
			claims[i] = string(c)
		}
		for i, h := range s.Needs {
			if i == 0 {
				needs = ""
			}
			needs = strings.TrimSpace(needs + " " + string(h))
		}
		_, _ = fmt.Fprintf(out, "%-26s %-14s %s\n    %s\n", s.Name, needs, strings.Join(claims, " "), s.About)
	}
	_, _ = fmt.Fprintln(out, "\nThe second column says what a scenario needs: an optional hook, or that the program can be restarted.")
}
