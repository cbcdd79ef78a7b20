package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway/mockserver"
)

// defaultDrain is how long a shutdown waits for running requests and deliveries.
const defaultDrain = 500 * time.Millisecond

// lastLines is how long it then waits for the log to be written.
const lastLines = time.Second

// serve runs the gateway until the context ends, and then drains it.
func serve(ctx context.Context, cfg config, out, errs io.Writer) error {
	if err := cfg.portFile.clear(); err != nil {
		return err
	}
	if cfg.stopWithStdin {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() { // ends with the process: a read of standard input can't be canceled
			_, _ = io.Copy(io.Discard, standardInput())
			cancel()
		}()
	}
	defer collectGarbage(cfg.memory)()
	gw, err := mockserver.New(cfg.options...) //nolint:contextcheck // a gateway outlives the call that makes it
	if err != nil {
		return err
	}
	if cfg.seedFile != "" && gw.Seeded() == nil {
		cfg.log.note(errs, noteWarning, cfg.seedFile+" was not applied: the data file has resources already")
	}
	if len(cfg.notReproduced) > 0 {
		cfg.log.note(errs, noteWarning, "the profile is ignored in rows that have no setting: "+strings.Join(cfg.notReproduced, ", "))
	}
	written := cfg.log.follow(errs, gw) //nolint:contextcheck // it ends with the gateway: events while draining are logged too
	err = errors.Join(listen(ctx, cfg, gw, out), gw.Close())
	select {
	case <-written:
	case <-time.After(lastLines): // standard error is blocked
	}
	return err
}

// collectGarbage makes the process collect garbage less often, as most of its memory
// stays in use, and as often as needed to stay within twice the gateway's memory limit
// and what the program itself needs. GOMEMLIMIT may set a lower limit.
func collectGarbage(memory int64) (restore func()) {
	limit := 2*min(memory, math.MaxInt64/4) + 16<<20
	percent, before := debug.SetGCPercent(400), debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, limit))
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(before)
	}
}

func listen(ctx context.Context, cfg config, gw *mockserver.Server, out io.Writer) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cfg.addr)
	if err != nil {
		if text := err.Error(); strings.Contains(text, "address already in use") || strings.Contains(text, "Only one usage") { // Unix or Windows
			err = fmt.Errorf("%w; another mockgateway may be running: -addr 127.0.0.1:0 picks a free port", err)
		}
		return err
	}
	srv := &http.Server{
		Handler:           gw.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	var unused unused
	srv.ConnState = unused.track
	served := make(chan error, 1)
	if cfg.tls.on() {
		if srv.TLSConfig, err = cfg.tls.config(); err != nil {
			return errors.Join(err, l.Close())
		}
		go func() { served <- srv.ServeTLS(l, "", "") }()
	} else {
		go func() { served <- srv.Serve(l) }()
	}
	addr := reachable(l.Addr())
	welcome(out, gw, cfg.tls.scheme()+addr, cfg)
	if err := cfg.portFile.write(addr); err != nil {
		return errors.Join(err, srv.Close())
	}
	defer cfg.portFile.remove(addr)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	cfg.portFile.remove(addr) // no new client should connect
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.drain)
	defer cancel()
	unused.close()
	if err := srv.Shutdown(ending); err != nil { // something hangs, perhaps because of an injected fault
		_ = srv.Close()
	}
	_ = gw.Wait(ending) // deliveries that don't finish in time are canceled
	return nil
}

// reachable returns the address at which clients on this machine can reach a
// listener: a loopback address if it listens on all of them.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

// unused has the connections without a request. [http.Server.Shutdown] waits 5 seconds for
// the first request of each: browsers and pools open connections in advance.
type unused struct {
	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// track is a [http.Server.ConnState].
func (u *unused) track(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.conns, c)
	case u.closed:
		_ = c.Close()
	default:
		if u.conns == nil {
			u.conns = map[net.Conn]struct{}{}
		}
		u.conns[c] = struct{}{}
	}
}

// close closes the connections, and each later one.
func (u *unused) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.conns {
		_ = c.Close()
	}
}
