package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver"
)

// drain is how long a shutdown waits for running requests and deliveries.
const drain = 5 * time.Second

// serve runs the gateway until the context ends, and then drains it.
func serve(ctx context.Context, cfg config, out, errs io.Writer) error {
	if err := cfg.portFile.clear(); err != nil {
		return err
	}
	gw, err := mockserver.New(cfg.options...) //nolint:contextcheck // a gateway outlives the call that makes it
	if err != nil {
		return err
	}
	err = listen(ctx, cfg, gw, out, errs)
	return errors.Join(err, gw.Close())
}

func listen(ctx context.Context, cfg config, gw *mockserver.Server, out, errs io.Writer) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cfg.addr)
	if err != nil {
		if strings.Contains(err.Error(), "address already in use") {
			err = fmt.Errorf("%w; another mockgateway may be running: -addr 127.0.0.1:0 takes a free port", err)
		}
		return err
	}
	srv := &http.Server{
		Handler:           logged(cfg.log, errs, gw.Handler()),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	addr := reachable(l.Addr())
	welcome(out, gw, addr)
	if err := cfg.portFile.write(addr); err != nil {
		return errors.Join(err, srv.Close())
	}
	defer cfg.portFile.remove(addr)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	cfg.portFile.remove(addr) // nobody should come any more
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := srv.Shutdown(ending); err != nil { // something hangs, perhaps as ordered
		_ = srv.Close()
	}
	_ = gw.Wait(ending) // what is not delivered in time is cut off
	return nil
}

// reachable returns an address under which a client of this machine reaches a
// listener: one that listens on every address is reached on loopback.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

func welcome(out io.Writer, gw *mockserver.Server, addr string) {
	base := "http://" + addr
	_, _ = fmt.Fprintf(out, `The mock payment gateway is ready.

  base URL       %[1]s
  API key        %[2]s   (any other %[3]s… key is an account of its own)
  control plane  %[1]s/__mock   (docs/mockgateway.md lists its calls)

Try it:

  curl -s %[1]s/v2/transactions -H 'Authorization: Bearer %[2]s' \
    -H 'Content-Type: application/json' \
    -d '{"amount":1990,"method":"pix","products":[{"name":"Book","price":1990}],
      "buyer":{"name":"Ana","email":"ana@example.com","document":{"type":"CPF","number":"12345678909"}}}'

Ctrl-C ends it.
`, base, gw.Key(), gw.Key()[:len("sk_test_")])
}

// logged logs each request as a line: the request and its status, nothing of
// what was in it.
func logged(how string, to io.Writer, next http.Handler) http.Handler {
	var handler slog.Handler
	switch how {
	case "json":
		handler = slog.NewJSONHandler(to, nil)
	case "text":
		handler = slog.NewTextHandler(to, nil)
	default:
		return next
	}
	logger := slog.New(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		sw := &statusWriter{ResponseWriter: w}
		defer func() { //nolint:contextcheck // it is the request's own
			logger.LogAttrs(r.Context(), slog.LevelInfo, "request",
				slog.String("method", r.Method), slog.String("path", template(r.URL.Path)),
				slog.Int("status", sw.status), slog.Duration("duration", time.Since(began)))
		}()
		next.ServeHTTP(sw, r)
	})
}

// template hides the elements of a path that look like ids, tokens or keys.
func template(path string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		if strings.ContainsAny(e, "0123456789") && len(e) > len("v2") {
			elements[i] = "{id}"
		}
	}
	return strings.Join(elements, "/")
}

// statusWriter records the status of the response; 0 is a broken connection.
type statusWriter struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
