package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/internal/demo"
	"github.com/gateway-go/gateway/mockserver"
)

// stage is the environment of the shops.
type stage struct {
	*demo.Printer

	gw          *mockserver.Server
	orders      int
	old         *oldShop
	oldWebhook  atomic.Pointer[http.Handler] // nil: the webhook URL is that of the new shop
	environment []string                     // of the new shop
	process     *exec.Cmd
	address     atomic.Pointer[string] // "" while no process serves
	books       *shop                  // a process that only looks
	folder      string
}

// open starts the gateway and opens the shops' database.
func open(ctx context.Context, out *demo.Printer, orders int) (s *stage, err error) {
	s = &stage{Printer: out, orders: orders}
	s.address.Store(new(string))
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.folder, err = os.MkdirTemp("", "movein-"); err != nil {
		return s, err
	}
	if s.gw, err = mockserver.New(mockserver.WithStart(time.Now()), mockserver.WithDialect(mockserver.Live)); err != nil {
		return s, err
	}
	address, err := s.gw.Listen("127.0.0.1:0") //nolint:contextcheck // it ends with Close
	if err != nil {
		return s, err
	}
	client, err := gateway.New(address, gateway.BearerToken(s.gw.Key()))
	if err != nil {
		return s, err
	}
	file := filepath.Join(s.folder, "shop.db")
	db, err := openDB(ctx, file)
	if err != nil {
		return s, err
	}
	s.old = &oldShop{db, client}
	old, err := s.old.webhook(s.gw.Secret()) //nolint:contextcheck // it has no database
	if err != nil {
		return s, err
	}
	s.oldWebhook.Store(&old)
	s.gw.Webhooks.Send(s)
	rate := max(orders/5, 20) // the example is to be short; a real gateway has limits
	s.environment = []string{
		databaseVariable + "=" + file, secretVariable + "=" + s.gw.Secret().Reveal(), "GATEWAY_BASE_URL=" + address, "GATEWAY_API_KEY=" + s.gw.Key(),
		rateVariable + "=" + strconv.Itoa(rate),
	}
	s.books, err = openShop(ctx, db, client, s.gw.Secret(), rate)
	return s, err
}

func (s *stage) close() error {
	err := s.kill()
	if s.old != nil {
		err = errors.Join(err, s.old.db.Close())
	}
	if s.gw != nil {
		err = errors.Join(err, s.gw.Close())
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}

// The variables of the new shop's process, besides those of [gateway.NewFromEnv]. The first one
// makes this program the shop.
const databaseVariable, secretVariable, rateVariable = "MOVEIN_EXAMPLE_DATABASE", "GATEWAY_WEBHOOK_SECRET", "MOVEIN_EXAMPLE_RATE"

// isShop reports whether this process is the shop, after it has ended.
func isShop() bool {
	file := os.Getenv(databaseVariable)
	if file == "" {
		return false
	}
	if err := serve(file); err != nil {
		log.Fatal("shop: ", err)
	}
	return true
}

// serve serves until the process is killed, or the program that started it is gone.
func serve(file string) error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	client, err := gateway.NewFromEnv()
	if err != nil {
		return err
	}
	rate, err := strconv.Atoi(os.Getenv(rateVariable))
	if err != nil {
		return err
	}
	db, err := openDB(ctx, file)
	if err != nil {
		return err
	}
	s, err := openShop(ctx, db, client, gateway.NewSecret(os.Getenv(secretVariable)), rate)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, _ = fmt.Println(listener.Addr())
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // without it, no buyer gets a response
	running := make(chan error, 2)
	go func() { running <- s.Run(ctx) }()
	go func() {
		if err := s.moveIn(ctx); err != nil {
			running <- err
		}
	}()
	return <-running
}

// start starts a process of the new shop.
func (s *stage) start(ctx context.Context) error {
	s.process = exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // it is this program
	s.process.Env, s.process.Stderr = append(os.Environ(), s.environment...), os.Stderr
	_, err := s.process.StdinPipe() // ends with this process
	stdout, err2 := s.process.StdoutPipe()
	if err := errors.Join(err, err2, s.process.Start()); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	line = strings.TrimSpace(line)
	s.address.Store(&line)
	return err
}

// kill kills the shop with SIGKILL: it ends in the middle of whatever it does.
func (s *stage) kill() error {
	s.address.Store(new(string))
	if s.process == nil {
		return nil
	}
	err := s.process.Process.Kill()
	_ = s.process.Wait() // says that it was killed
	s.process = nil
	return err
}

// post sends a request to the process that runs, as a load balancer does. The status is 503
// if there is none, and 502 if it was killed before it responded.
func (s *stage) post(ctx context.Context, path string, header http.Header, body io.Reader) (status int, text string) {
	address := *s.address.Load()
	if address == "" {
		return http.StatusServiceUnavailable, ""
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, body) //nolint:gosec // of its own process
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // of its own process
	if err != nil {
		return http.StatusBadGateway, err.Error()
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return http.StatusBadGateway, err.Error()
	}
	return resp.StatusCode, string(b)
}

// ServeHTTP is the webhook URL: first that of the old shop, then that of the new one.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if old := s.oldWebhook.Load(); old != nil {
		(*old).ServeHTTP(w, r)
		return
	}
	status, _ := s.post(r.Context(), "/webhooks", r.Header.Clone(), r.Body)
	w.WriteHeader(status)
}

// ask repeats a buyer's request, as a reload of the page does, until it has a response.
func (s *stage) ask(ctx context.Context, path string) (text string, err error) {
	for ctx.Err() == nil {
		var status int
		if status, text = s.post(ctx, path, nil, nil); status == http.StatusOK && text != "" {
			return text, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "", fmt.Errorf("%s: %w: %s", path, ctx.Err(), text)
}
