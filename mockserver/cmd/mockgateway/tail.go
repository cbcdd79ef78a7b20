package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"

	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
)

// tail is the command tail.
func tail(set *flag.FlagSet) action {
	types := set.String("types", "", "comma-separated `types` of events, such as transition,delivery; empty means all")
	return func(ctx context.Context, s *session, args []string) error {
		if len(args) > 0 {
			return wrongUsage("unexpected argument %q", args[0])
		}
		stream, err := s.events(ctx, *types)
		if err != nil {
			return err
		}
		return stream.each(ctx, func(e mockserver.Event) error { return s.show(e) })
	}
}

// show writes an event in the format of the log, or with -json as the gateway sent it.
func (s *session) show(e mockserver.Event) error {
	if s.json {
		s.log.form = "json"
	}
	_, err := s.out.Write(s.log.lines(e))
	return err
}

// eventStream is an open stream of events.
type eventStream struct {
	from string
	body *http.Response
}

// events opens the stream of events: those of the account of -key, or of all accounts.
func (s *session) events(ctx context.Context, types string) (*eventStream, error) {
	resp, err := s.Open(ctx, http.MethodGet, "events?types="+url.QueryEscape(types), nil) //nolint:bodyclose // the reader of the stream closes it
	return &eventStream{s.Base, resp}, err
}

// each calls do with every event until the context ends. An end of the stream before
// that is an error.
func (s *eventStream) each(ctx context.Context, do func(mockserver.Event) error) error {
	defer func() { _ = s.body.Body.Close() }()
	lines := bufio.NewReader(s.body.Body)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("%w at %s any more", admin.ErrNoGateway, s.from)
		}
		data, found := bytes.CutPrefix(line, []byte("data: "))
		if !found {
			continue
		}
		var e mockserver.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("the gateway at %s has another version: %w", s.from, err)
		}
		if err := do(e); err != nil {
			return err
		}
	}
}
