package simulation

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	kit "github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// shop is one process of the shop.
type shop struct {
	y       *Year
	number  int
	db      *sql.DB
	client  *gateway.Client
	m       *kit.Merchant[*sql.Tx]
	stop    context.CancelFunc
	ended   chan error
	crashed atomic.Bool
	back    atomic.Int64 // when the next process starts, in Unix nanoseconds
}

func (s *shop) name() string { return fmt.Sprintf("shop.%d", s.number) }

// start starts the next process.
func (y *Year) start(ctx context.Context) error {
	s := &shop{y: y, number: 1, ended: make(chan error, 1)}
	if y.shop != nil {
		s.number = y.shop.number + 1
	}
	s.db = sql.OpenDB(&yearConnector{s, y.reader.Driver()})
	s.db.SetMaxIdleConns(16)
	options := []gateway.Option{
		gateway.WithAccount("shop"), gateway.WithHTTPClient(&http.Client{Transport: yearRoute{s}}), noBackoff(), gateway.WithAttemptTimeout(17 * time.Second),
	}
	var err error
	s.client, err = gateway.New(mockserver.BaseURL, gateway.BearerToken(y.gw.Key()), options...)
	if err != nil {
		return err
	}
	cfg := kit.Config{
		Accounts: []kit.Account{{
			Name: "shop", Client: s.client, Keys: []webhook.SigningKey{{Key: y.gw.Secret()}}, Links: true, Zone: zone,
		}},
		Workers: 4, SecondPayment: kit.RefundSecondPayment, PollInterval: 4 * time.Hour, CompareEvery: 5 * day,
		Logger: slog.New(slog.NewTextHandler(yearLog{s}, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	running, stop := context.WithCancel(ctx)
	s.stop = stop
	if s.m, err = kit.Open(ctx, database.SQLite(s.db), cfg, s.callbacks()); err != nil {
		if y.cfg.Fate == HidesResources && errors.Is(err, kit.ErrAccount) && s.crashed.CompareAndSwap(false, true) {
			// It does not find its own transactions, and is started again and again until it does.
			s.back.Store(time.Now().Add(time.Minute).UnixNano())
			stop()
		}
		if s.crashed.Load() { // while it was starting
			s.ended <- nil
			y.shop = s
			return nil
		}
		stop()
		return errors.Join(err, s.db.Close())
	}
	go func() { s.ended <- s.m.Run(running) }()
	y.shop = s
	y.note(s.name(), "starts")
	return nil
}

// end ends the process.
func (s *shop) end() error {
	s.stop()
	err := <-s.ended
	s.ended <- nil
	if s.crashed.Load() {
		err = nil
	}
	return errors.Join(err, s.db.Close())
}

// restart starts the next process if the last one has crashed and its time has come.
func (y *Year) restart(ctx context.Context) error {
	if !y.shop.crashed.Load() || time.Now().UnixNano() < y.shop.back.Load() {
		return nil
	}
	if err := y.shop.end(); err != nil {
		return err
	}
	return y.start(ctx)
}

// revive makes a crashed process start at once.
func (s *shop) revive() { s.back.Store(0) }

// mayCrash crashes the process with probability 1/n, and reports whether it has crashed.
func (s *shop) mayCrash(n int, where string) bool {
	y := s.y
	if s.crashed.Load() || !y.chance(y.crashes, n) || !s.crashed.CompareAndSwap(false, true) {
		return s.crashed.Load()
	}
	down := y.span(y.crashes, time.Second, 30*time.Minute)
	if y.chance(y.crashes, 10) {
		down = y.span(y.crashes, 5*time.Hour, 40*time.Hour) // longer than the gateway keeps redelivering
	}
	y.note(s.name(), "crashes %s, for %s", where, down)
	y.mu.Lock()
	y.counts.Crashes++
	y.mu.Unlock()
	s.back.Store(time.Now().Add(down).UnixNano())
	s.stop()
	return true
}

// yearLog writes the log of a process.
type yearLog struct{ s *shop }

func (l yearLog) Write(b []byte) (int, error) {
	if !l.s.crashed.Load() {
		l.s.y.note(l.s.name(), "%s", strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

// yearRoute carries the requests of a process to the gateway.
type yearRoute struct{ s *shop }

// RoundTrip implements http.RoundTripper.
func (n yearRoute) RoundTrip(r *http.Request) (*http.Response, error) {
	s, y := n.s, n.s.y
	what := r.Method + " " + r.URL.Path
	if err := n.latency(r.Context()); err != nil {
		return nil, err
	}
	y.mu.Lock()
	y.counts.Requests++
	y.mu.Unlock()
	read := r.Method == http.MethodGet
	odds := 150
	if read {
		odds = 3000
	}
	if s.mayCrash(odds, "before "+what) {
		return nil, errCrashed
	}
	if !read && y.chance(y.network, 100) {
		return nil, n.arriveLate(r, what) //nolint:contextcheck // it outlives the request
	}
	resp, err := y.gw.Transport().RoundTrip(r)
	if err != nil {
		y.note(s.name(), "%s: %v", what, err)
		return nil, err
	}
	if !read {
		y.note(s.name(), "%s: %d", what, resp.StatusCode)
	}
	if s.mayCrash(odds, "after "+what) {
		_ = resp.Body.Close()
		return nil, errCrashed
	}
	return y.returns(r, resp)
}

// latency delays a request and lets the gateway's clock catch up.
func (n yearRoute) latency(ctx context.Context) error {
	y := n.s.y
	if err := pause(ctx, y.span(y.network, 20*time.Millisecond, 400*time.Millisecond)); err != nil {
		return err
	}
	if n.s.crashed.Load() {
		return errCrashed
	}
	return y.catchUp() //nolint:contextcheck // the clock takes none
}

// arriveLate lets a request arrive up to a minute after its sender has given up. That is
// within kit.Config.SettleAfter.
func (n yearRoute) arriveLate(r *http.Request, what string) error {
	y := n.s.y
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	header, url, method, wait := r.Header.Clone(), r.URL.String(), r.Method, y.span(y.network, time.Second, time.Minute)
	y.late.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), wait+30*time.Second) // the gateway may not respond
		defer cancel()
		if pause(ctx, wait) != nil {
			return
		}
		late, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body)) //nolint:gosec // goes to the mock gateway, in memory
		if err != nil {
			return
		}
		late.Header = header
		resp, err := y.gw.Transport().RoundTrip(late)
		if err != nil {
			y.note(n.s.name(), "%s arrives late: %v", what, err)
			return
		}
		_ = resp.Body.Close()
		y.note(n.s.name(), "%s arrives late: %d", what, resp.StatusCode)
	})
	y.note(n.s.name(), "%s: delayed", what)
	return syscall.ECONNRESET
}

// ServeHTTP is the shop's webhook endpoint. Unless the network loses a delivery, it passes
// it to the running process.
func (y *Year) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	y.receiving.Add(1)
	defer y.receiving.Add(-1)
	y.mu.Lock()
	y.counts.Webhooks++
	y.mu.Unlock()
	s := y.shop
	if s.m == nil || s.crashed.Load() || y.chance(y.network, 50) {
		panic(http.ErrAbortHandler)
	}
	if y.cfg.Defect == NeverCompares && r.Header.Get("X-Mock-Fault") == "" && y.chance(y.network, 4) {
		rw.WriteHeader(http.StatusOK) // something in between lost it
		return
	}
	s.m.Webhook("shop").ServeHTTP(rw, r)
	if s.crashed.Load() || y.chance(y.network, 50) {
		panic(http.ErrAbortHandler) // the response is lost
	}
}

// returned begins the name of a Pix key whose bank returns what it received.
const returned = "returned@example.com"

// returns makes the gateway report a transfer that was paid a day ago as returned by the
// bank, which the mock gateway has no control for. No webhook says so.
func (y *Year) returns(r *http.Request, resp *http.Response) (*http.Response, error) {
	path, _ := strings.CutPrefix(r.URL.Path, "/v2/transfers")
	if path == r.URL.Path || r.Method != http.MethodGet || resp.StatusCode != http.StatusOK {
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if bytes.Contains(body, []byte(returned)) {
		var response any
		numbers := json.NewDecoder(bytes.NewReader(body))
		numbers.UseNumber()
		if err := numbers.Decode(&response); err != nil {
			return nil, err
		}
		y.mark(response)
		if body, err = json.Marshal(response); err != nil {
			return nil, err
		}
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// mark marks the transfers in a response, one or a list, that the bank has returned.
func (y *Year) mark(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			y.mark(item)
		}
	case map[string]any:
		id, _ := v["id"].(string)
		if key, _ := v["pix_key"].(string); key != returned || v["status"] != "paid" {
			for _, member := range v {
				y.mark(member)
			}
			return
		}
		y.mu.Lock()
		at, known := y.paidAt[id]
		if !known {
			at = time.Now()
			y.paidAt[id] = at
		}
		y.mu.Unlock()
		if time.Since(at) >= day {
			v["status"], v["updated_at"] = "error", at.Add(day).UTC().Format(time.RFC3339)
		}
	}
}
