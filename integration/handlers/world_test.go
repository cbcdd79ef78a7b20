// Package handlers_test starts the webhook handlers of examples/webhooks, each with its
// framework and database, and sends them what a gateway sends, and what it doesn't.
package handlers_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/gateway-go/gateway/internal/exam/outside"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

const (
	examples  = "../../examples/webhooks"
	path      = "/webhooks/gateway"
	oldSecret = "whsec_before_the_rotation"
)

// app is an example, and the same with a body parser in front.
type app struct {
	name    string
	node    bool // with PostgreSQL; otherwise Python with SQLite
	built   bool // which takes long, so a third of the commits does it
	command []string
	mistake []string
	path    string // of the mistake
}

var apps = []app{
	{name: "Express", node: true, command: []string{"express.js"}, mistake: []string{"express-mistake.js"}, path: path},
	{name: "Next.js", node: true, built: true, command: next, mistake: next, path: "/mistake"},
	{name: "Node.js", node: true, command: []string{"server.js"}, mistake: []string{"server-mistake.js"}, path: path},
	{name: "Flask", command: flask("flask_app"), mistake: flask("flask_mistake"), path: path},
	{name: "FastAPI", command: uvicorn("fastapi_app:app"), mistake: uvicorn("fastapi_mistake:app"), path: path},
}

var next = []string{"node_modules/next/dist/bin/next", "start", "--hostname", "127.0.0.1", "--port", port}

func flask(module string) []string {
	return []string{"-m", "flask", "--app", module, "run", "--port", port}
}

func uvicorn(name string) []string { return []string{"-m", "uvicorn", name, "--port", port} }

// port stands for the port in a command.
const port = "PORT"

// handler is a running app with its database.
type handler struct {
	*testing.T

	url    string
	db     *sql.DB
	output *output
}

// start starts an app until the test ends. The old secret is accepted until the time.
func (a app) start(t *testing.T, command []string, path string, until time.Time) *handler {
	t.Helper()
	listen, release, err := outside.ReservePort(t.Context())
	require.NoError(t, err)
	t.Cleanup(release)
	number := strconv.Itoa(listen)
	h := &handler{T: t, url: "http://127.0.0.1:" + number + path, output: &output{}}
	program, folder := a.program(t)
	var args []string
	for _, arg := range command {
		args = append(args, strings.Replace(arg, port, number, 1))
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, h.output, h.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	python, err := filepath.Abs(examples + "/python")
	require.NoError(t, err)
	cmd.Env = append(os.Environ(), "PORT="+number, h.database(a), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+python,
		"GATEWAY_WEBHOOK_SECRET="+webhooktest.Secret().Reveal(),
		"GATEWAY_WEBHOOK_OLD_SECRET="+oldSecret, "GATEWAY_WEBHOOK_OLD_SECRET_UNTIL="+until.UTC().Format(time.RFC3339))
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		<-ended
	})
	h.await(ended)
	return h
}

func (a app) program(t *testing.T) (name, folder string) {
	t.Helper()
	if a.built && !explore.Sampled(0) {
		t.Skipf("%s is built for a third of the commits, and not with SAMPLE=%s: set SAMPLE=all", a.name, os.Getenv("SAMPLE"))
	}
	if a.node {
		folder = os.Getenv("HANDLERS_NODE")
		name, _ = exec.LookPath("node")
	} else {
		name, folder = os.Getenv("HANDLERS_PYTHON"), "testdata/python"
	}
	if name == "" || folder == "" {
		t.Skip("HANDLERS_NODE or HANDLERS_PYTHON is not set: run ../with-postgres ../with-frameworks go test ./handlers")
	}
	return name, folder
}

// await returns when the app responds.
func (h *handler) await(ended <-chan struct{}) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url, nil)
		require.NoError(h, err)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			require.NoError(h, resp.Body.Close())
			return
		}
		select {
		case <-ended:
			require.Fail(h, "the app has exited", h.output)
		case <-ctx.Done():
			require.Fail(h, "the app does not respond", h.output)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// database creates a database with the tables of the examples, and returns the variable
// that tells the app where it is.
func (h *handler) database(a app) string {
	h.Helper()
	schema, err := os.ReadFile(examples + "/schema.sql")
	require.NoError(h, err)
	var variable string
	if a.node {
		variable = h.postgres()
	} else {
		file := filepath.Join(h.TempDir(), "shop.db")
		variable = "DATABASE=" + file
		h.db = h.open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	}
	h.exec(string(schema))
	return variable
}

func (h *handler) postgres() string {
	h.Helper()
	address := os.Getenv("DATABASE_URL")
	if address == "" {
		h.Skip("DATABASE_URL is not set: run ../with-postgres ../with-frameworks go test ./handlers")
	}
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	h.db = h.open("pgx", address)
	h.exec("CREATE SCHEMA " + schema)
	address += "&options=-csearch_path%3D" + schema
	h.db = h.open("pgx", address)
	return "DATABASE_URL=" + address
}

func (h *handler) open(driver, name string) *sql.DB {
	h.Helper()
	db, err := sql.Open(driver, name)
	require.NoError(h, err)
	h.Cleanup(func() { assert.NoError(h, db.Close()) })
	return db
}

func (h *handler) exec(statement string, args ...any) {
	h.Helper()
	_, err := h.db.ExecContext(context.WithoutCancel(h.Context()), statement, args...)
	require.NoError(h, err)
}

// order stores an order and returns its reference.
func (h *handler) order(cents int64) string {
	h.Helper()
	ref := "order-" + webhooktest.NewID()
	h.exec(`INSERT INTO orders (ref, amount, currency) VALUES ($1, $2, 'BRL')`, ref, cents)
	return ref
}

func (h *handler) state(ref string) (state string) {
	h.Helper()
	require.NoError(h, h.db.QueryRowContext(h.Context(), `SELECT state FROM orders WHERE ref = $1`, ref).Scan(&state))
	return state
}

// problem returns the problem of an event, and whether the event is stored.
func (h *handler) problem(event string) (problem string, stored bool) {
	h.Helper()
	err := h.db.QueryRowContext(h.Context(), `SELECT coalesce(problem, '') FROM gateway_events WHERE id = $1`, event).Scan(&problem)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false
	}
	require.NoError(h, err)
	return problem, true
}

// effects returns the stored events.
func (h *handler) effects() (all []webhooktest.Effect) {
	h.Helper()
	rows, err := h.db.QueryContext(h.Context(), `SELECT id, kind, resource_id FROM gateway_events`)
	require.NoError(h, err)
	for rows.Next() {
		var e webhooktest.Effect
		require.NoError(h, rows.Scan(&e.EventID, &e.Kind, &e.Resource))
		all = append(all, e)
	}
	require.NoError(h, rows.Err())
	require.NoError(h, rows.Close())
	return all
}

// send sends a delivery and returns the response.
func (h *handler) send(r *http.Request) (status int, header http.Header, body string) {
	h.Helper()
	sent := r.Clone(h.Context())
	at, err := url.Parse(h.url)
	require.NoError(h, err)
	sent.URL, sent.RequestURI, sent.Host = at, "", at.Host
	resp, err := http.DefaultClient.Do(sent)
	require.NoError(h, err)
	raw, err := io.ReadAll(resp.Body)
	require.NoError(h, err)
	require.NoError(h, resp.Body.Close())
	return resp.StatusCode, resp.Header, string(raw)
}

// proxy passes requests to the app.
func (h *handler) proxy() http.Handler {
	at, err := url.Parse(h.url)
	require.NoError(h, err)
	return &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = at, at.Host },
		ErrorLog: log.New(io.Discard, "", 0), // a large body breaks the connection, which is a rejection
	}
}

// output is what an app prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
