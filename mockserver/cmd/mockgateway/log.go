package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/events"
)

// log is how events are logged.
type log struct {
	form  string // text, json or off
	color bool
}

// The types of the objects that describe the command itself.
const (
	noteReady   = "ready"
	noteWarning = "warning"
	noteError   = "error"
)

// note is a line of the log that is no event.
type note struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	BaseURL string `json:"base_url,omitempty"`
	APIKey  string `json:"api_key,omitempty"`
}

// note writes a message of the command itself, in the form of the log.
func (l log) note(to io.Writer, kind, text string) {
	if l.form != "json" {
		_, _ = fmt.Fprintf(to, "mockgateway: %s\n", text)
		return
	}
	l.object(to, note{Type: kind, Message: text})
}

func (log) object(to io.Writer, n note) {
	b, err := json.Marshal(n) //nolint:gosec // the key of the mock is for everyone
	if err == nil {           // strings can always be encoded
		_, _ = to.Write(append(b, '\n'))
	}
}

// colored reports whether w is a terminal that should get colors: see
// no-color.org.
func colored(w io.Writer, environ []string) bool {
	return terminal(w, environ) && !slices.ContainsFunc(environ, func(entry string) bool {
		value, ok := strings.CutPrefix(entry, "NO_COLOR=")
		return ok && value != ""
	})
}

// terminal reports whether w is a terminal that understands control sequences.
func terminal(w io.Writer, environ []string) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	variables := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
	}
	return variables["TERM"] != "" && variables["TERM"] != "dumb" || variables["WT_SESSION"] != ""
}

// follow logs the gateway's events from now on. The channel is closed after the
// gateway is closed and everything is written.
func (l log) follow(to io.Writer, gw *mockserver.Server) (written <-chan struct{}) {
	done := make(chan struct{})
	if l.form == "off" {
		close(done)
		return done
	}
	events := gw.Events(context.Background())
	go func() {
		defer close(done)
		for e := range events {
			_, _ = to.Write(l.lines(e))
		}
	}()
	return done
}

// lines returns the log lines of an event: none if another event's line has the
// same information.
func (l log) lines(e mockserver.Event) []byte {
	if l.form == "json" {
		b, err := json.Marshal(e)
		if err != nil {
			return nil
		}
		return append(b, '\n')
	}
	first, more := l.text(e)
	if first == "" {
		return nil
	}
	var b strings.Builder
	b.WriteString(l.paint(gray, e.Wall.Local().Format(time.TimeOnly)) + "  " + first)
	if strings.HasPrefix(e.Account, "acct_") {
		b.WriteString("  " + l.paint(gray, e.Account))
	}
	b.WriteByte('\n')
	for _, line := range more {
		b.WriteString("          " + line + "\n")
	}
	return []byte(b.String())
}

// text formats an event as a line, with its detail lines.
func (l log) text(e mockserver.Event) (first string, more []string) {
	switch {
	case e.Request != nil:
		return l.request(e.Request)
	case e.Transition != nil:
		return l.transition(e.Transition), nil
	case e.Timer != nil:
		return l.timer(e.Timer), nil
	case e.Webhook != nil:
		return l.webhook(e.Webhook), nil
	case e.Delivery != nil:
		return l.delivery(e.Delivery), nil
	case e.Clock != nil:
		return fmt.Sprintf("clock %s -> %s", stamp(e.Clock.From), stamp(e.Clock.To)), nil
	case e.Fault != nil:
		return l.fault(e.Fault), nil
	case e.Reset != nil && e.Reset.Cause == "restore":
		return "a snapshot was restored", nil
	case e.Reset != nil && e.Reset.Cause == "seed":
		return "a seed file was applied", nil
	case e.Reset != nil:
		return "the account was reset", nil
	case e.Lost != nil:
		return l.paint(yellow, fmt.Sprintf("%d events were not logged: standard error is too slow", e.Lost.Events)), nil
	}
	return "", nil
}

func (l log) request(r *mockserver.RequestEvent) (first string, more []string) {
	path := r.Path
	if r.Query != "" {
		path += "?" + r.Query
	}
	parts := []string{l.status(r.Status), r.Method, plain(path)}
	for _, text := range []string{r.Operation, r.Code} {
		if text != "" {
			parts = append(parts, plain(text))
		}
	}
	if r.Fault != "" {
		parts = append(parts, l.paint(yellow, "fault "+plain(r.Fault)))
	}
	if r.Broken && r.Fault == "" {
		parts = append(parts, l.paint(yellow, "connection broken"))
	}
	for _, e := range r.Errors {
		more = append(more, fmt.Sprintf("%s %s (%s)", l.paint(bold, plain(e.Field)), plain(e.Message), plain(e.Code)))
	}
	if r.Replayed {
		parts = append(parts, l.paint(yellow, "replayed"))
	}
	if full := len(more) == events.MaxErrors; (full || len(more) == 0) && r.Detail != "" && r.Fault == "" {
		more = append(more, plain(r.Detail)) // which contains their number
	}
	if r.Duration > 0 {
		parts = append(parts, l.paint(gray, took(r.Duration)))
	}
	return strings.Join(parts, " "), more
}

func (l log) transition(t *mockserver.TransitionEvent) string {
	line := fmt.Sprintf("%s %s %s -> %s", strings.ReplaceAll(t.Resource, "_", " "), plain(t.ID), cmp.Or(t.From, "new"), l.paint(bold, t.To))
	if t.Reference != "" {
		line += " " + plain(t.Reference)
	}
	return line + " " + l.paint(gray, "by "+t.Cause)
}

// timer returns nothing for attempts to deliver webhooks, which have their own
// events.
func (l log) timer(t *mockserver.TimerEvent) string {
	switch {
	case t.Error != "":
		return l.paint(red, "timer "+t.Kind+" failed and will be tried again: "+plain(t.Error))
	case t.Kind == "webhook.attempt":
		return ""
	}
	return fmt.Sprintf("timer %s %s, due %s", t.Kind, plain(t.ID), stamp(t.Due))
}

func (l log) webhook(w *mockserver.WebhookEvent) string {
	line := l.paint(cyan, "--> "+w.Kind) + " " + w.ID
	if w.Reference != "" {
		line += " " + plain(w.Reference)
	}
	if w.Endpoints == 0 {
		line += l.paint(gray, " (no endpoint)")
	}
	return line
}

func (l log) delivery(d *mockserver.DeliveryEvent) string {
	if d.Attempt == 0 {
		return fmt.Sprintf("%s %s is held", l.paint(cyan, "||| "+d.Kind), d.EventID)
	}
	target := cmp.Or(d.URL, "in memory")
	line := fmt.Sprintf("%s %s POST %s %s %s", l.paint(cyan, "<--"), l.status(d.Status), plain(target), d.Kind, l.paint(gray, took(d.Duration)))
	if d.Attempt > 1 {
		line += fmt.Sprintf(", attempt %d", d.Attempt)
	}
	if d.Fault != "" {
		line += ", " + l.paint(yellow, "fault "+plain(d.Fault))
	}
	if d.Error != "" && d.Status == 0 {
		line += ": " + plain(d.Error)
	}
	switch {
	case d.State == mockserver.DeliveryFailed:
		line += l.paint(red, ", given up")
	case !d.NextAt.IsZero():
		line += ", retry due " + stamp(d.NextAt)
	}
	return line
}

func (l log) fault(f *mockserver.FaultEvent) string {
	switch f.Action {
	case "down":
		return l.paint(yellow, "the gateway is down")
	case "up":
		return "the gateway is up again"
	}
	line := strings.TrimSuffix("fault "+f.ID, " ") + " " + f.Action + ": " + plain(f.Fault)
	if target := cmp.Or(f.Target, f.On); target != "" {
		line += " on " + plain(target)
	}
	if f.Times > 0 {
		line += fmt.Sprintf(", %d of %d", f.Fired, f.Times)
	}
	return l.paint(yellow, line)
}

// status colors a status by its class; 0 is no response.
func (l log) status(status int) string {
	text := strconv.Itoa(status)
	switch {
	case status == 0:
		return l.paint(red, "---")
	case status >= 500:
		return l.paint(red, text)
	case status >= 300:
		return l.paint(yellow, text)
	}
	return l.paint(green, text)
}

// The colors, as terminals number them.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	gray   = "90"
)

func (l log) paint(color, text string) string {
	if !l.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// plain quotes an untrusted string that contains unprintable characters, such as
// control sequences.
func plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}
