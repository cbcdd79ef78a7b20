package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/control"
	"github.com/gateway-go/gateway/mockserver/internal/duration"
)

// changed is what a command shows of the resource that a control returns.
type changed struct {
	ID     string `json:"id"`
	Slug   string `json:"slug"`
	Status string `json:"status"`
}

// act returns a command that performs the first of the controls whose kind of resource
// has the id.
func act(names ...string) func(*flag.FlagSet) action {
	return func(*flag.FlagSet) action {
		return func(ctx context.Context, s *session, args []string) error {
			if len(args) != 1 {
				return wrongUsage("an id is needed, and nothing else")
			}
			var missing *admin.RefusedError
			for _, name := range names {
				c := control.Named(name)
				path := strings.Replace(c.Path(), "{id}", url.PathEscape(args[0]), 1)
				r, raw, err := admin.Call[changed](ctx, s.Client, http.MethodPost, path, nil)
				if errors.As(err, &missing) && missing.Status == http.StatusNotFound {
					continue
				}
				if err != nil {
					return err
				}
				kind, note := strings.TrimSuffix(c.Resource(), "s"), ""
				if c.Number.Member != "" {
					note = "; its next charge fails"
				}
				return s.print(raw, "%s %s %s%s", kind, plain(r.ID+r.Slug), plain(r.Status), note)
			}
			missing.Detail += "\nAn account has only its own resources: -key selects the account."
			return missing
		}
	}
}

// advance is the command advance.
func advance(set *flag.FlagSet) action {
	timeout := set.String("timeout", "", "`duration`, in wall time, that the webhooks of one due time may take; empty means 30s")
	return func(ctx context.Context, s *session, args []string) error {
		if len(args) != 1 {
			return wrongUsage("a duration such as 40d, a time such as 2027-02-01T00:00:00Z or next is needed")
		}
		body := admin.AdvanceBody{By: args[0]}
		if args[0] == "next" {
			body = admin.AdvanceBody{Next: true}
		} else if _, err := time.Parse(time.RFC3339, args[0]); err == nil {
			body = admin.AdvanceBody{To: args[0]}
		} else if _, err := duration.Parse(args[0]); err != nil {
			return wrongUsage("%v, and no time such as 2027-02-01T00:00:00Z", err)
		}
		path := "clock/advance"
		if *timeout != "" {
			path += "?timeout=" + url.QueryEscape(*timeout)
		}
		now, raw, err := admin.Call[admin.ClockView](ctx, s.Client, http.MethodPost, path, body)
		if err != nil {
			return err
		}
		return s.print(raw, "clock %s", stamp(time.Time(now.Now)))
	}
}

// fault is the command fault.
func fault(set *flag.FlagSet) action {
	times := set.Int("times", 0, "`number` of times that the fault occurs; 0 is unlimited")
	nth := set.Int("nth", 0, "`number` of the only match in which it occurs, from 1; 0 is every match")
	probability := set.Float64("probability", 1, "`probability` from 0 to 1 that it occurs")
	until := set.String("for", "", "`duration` on the virtual clock after which it ends, such as 10m")
	return func(ctx context.Context, s *session, args []string) error {
		switch {
		case len(args) == 0:
			return wrongUsage("the name of a fault, list or clear is needed")
		case len(args) > 2 || args[0] == "list" && len(args) > 1:
			return wrongUsage("unexpected argument %q", args[len(args)-1])
		case args[0] == "list":
			return s.faults(ctx)
		case args[0] == "clear":
			return s.clearFaults(ctx, args[1:])
		}
		body := admin.FaultBody{Fault: args[0], Probability: probability, For: *until}
		if len(args) == 2 {
			body.On = args[1]
		}
		if *times != 0 {
			body.Times = times
		}
		if *nth != 0 {
			body.Nth = nth
		}
		added, raw, err := admin.Call[admin.FaultView](ctx, s.Client, http.MethodPost, "faults", body)
		if err != nil {
			return err
		}
		return s.print(raw, "%s", describe(added))
	}
}

// describe returns a fault on one line.
func describe(f admin.FaultView) string {
	text := f.ID + " " + plain(f.Fault)
	if f.On != "" {
		text += " on " + plain(f.On)
	}
	if f.Nth > 0 {
		text += fmt.Sprintf(", match %d only", f.Nth)
	}
	if f.Probability < 1 {
		text += fmt.Sprintf(", probability %v", f.Probability)
	}
	if end := time.Time(f.Until); !end.IsZero() {
		text += ", until " + end.Format(time.RFC3339)
	}
	if f.Times > 0 {
		return text + fmt.Sprintf(", occurred %d of %d times", f.Fired, f.Times)
	}
	return text + fmt.Sprintf(", occurred %d times", f.Fired)
}

// faults lists the faults.
func (s *session) faults(ctx context.Context) error {
	list, raw, err := admin.Call[[]admin.FaultView](ctx, s.Client, http.MethodGet, "faults", nil)
	if err != nil {
		return err
	}
	if s.json || len(list) == 0 {
		return s.print(raw, "no fault")
	}
	for _, f := range list {
		if err := s.print(nil, "%s", describe(f)); err != nil {
			return err
		}
	}
	return nil
}

// clearFaults removes one fault, or those of requests and of webhooks.
func (s *session) clearFaults(ctx context.Context, ids []string) error {
	paths := []string{"faults", "deliveries/faults"}
	if len(ids) > 0 {
		paths = []string{"faults/" + url.PathEscape(ids[0])}
	}
	var left jsontext.Value
	for _, path := range paths {
		var err error
		if _, left, err = admin.Call[jsontext.Value](ctx, s.Client, http.MethodDelete, path, nil); err != nil {
			return err
		}
	}
	return s.print(left, "removed")
}
