package operations_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/operations"
)

func TestMain(m *testing.M) { storm.Main(m, runWorker) }

// processSpec configures a worker process.
type processSpec struct {
	Engine      engine        `json:"engine"`
	Database    string        `json:"database"`
	Gateway     string        `json:"gateway"`
	Accounts    []accountSpec `json:"accounts"`
	Death       float64       `json:"death"` // the probability of killing itself at each point
	KeyLifetime time.Duration `json:"key_lifetime"`
	Naive       bool          `json:"naive"` // run the naive loop instead of the outbox
}

func runWorker(ctx context.Context, spec processSpec) error {
	db, err := spec.Engine.open(ctx, spec.Database)
	if err != nil {
		return err
	}
	d := &death{probability: spec.Death, next: &http.Transport{MaxIdleConnsPerHost: 16}}
	var clients []*gateway.Client
	for _, a := range spec.Accounts {
		client, err := a.client(spec.Gateway, gateway.WithHTTPClient(&http.Client{Transport: d}))
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}
	if spec.Naive {
		return naiveLoop(ctx, db.pool, clients[0], d)
	}
	var outboxes []outbox
	for _, client := range clients {
		o, err := db.outbox(operations.Config{
			Client: client, Logger: quiet, KeyLifetime: spec.KeyLifetime, SendTimeout: stormSendTimeout, SettleAfter: 3 * stormSendTimeout,
			HandlerTimeout: 3 * time.Second, MaxBackoff: time.Second, Workers: 24 / len(clients),
		})
		if err != nil {
			return err
		}
		o.handle(func(*operations.Entry, error) error { d.at("before the commit"); return nil })
		outboxes = append(outboxes, o)
	}
	return errors.Join(db.work(ctx, outboxes...), db.close())
}

// death kills its own process at random, before and after a write.
type death struct {
	next        http.RoundTripper
	probability float64
}

func (d *death) at(point string) {
	if rand.Float64() >= d.probability {
		return
	}
	fmt.Println(point)
	storm.Die()
}

func (d *death) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return d.next.RoundTrip(req)
	}
	d.at("before the request")
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { d.at("after the request") }}
	resp, err := d.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	d.at("after the response")
	return resp, err
}

// fleet is a set of worker processes. A killed process is restarted.
type fleet struct {
	t        *testing.T
	watchers sync.WaitGroup

	mu    sync.Mutex
	specs []processSpec     // of each process
	cmds  map[*exec.Cmd]int // the process's index
	ended bool
	kills map[string]int // by the point of death
}

func startFleet(t *testing.T, specs []processSpec) *fleet {
	t.Helper()
	f := &fleet{t: t, specs: specs, cmds: make(map[*exec.Cmd]int), kills: make(map[string]int)}
	for i := range specs {
		require.NoError(t, f.start(i))
	}
	return f
}

func (f *fleet) start(i int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil
	}
	cmd, out, err := storm.StartProcess(f.specs[i])
	if err != nil {
		return err
	}
	f.cmds[cmd] = i
	f.watchers.Go(func() { f.watch(cmd, out) })
	return nil
}

// watch restarts a process when it is killed.
func (f *fleet) watch(cmd *exec.Cmd, out io.Reader) {
	line, _ := bufio.NewReader(out).ReadString('\n')
	err := cmd.Wait()
	killed := storm.WasKilled(err)
	f.mu.Lock()
	i := f.cmds[cmd]
	delete(f.cmds, cmd)
	stopped := f.ended && storm.EndedBy(err, syscall.SIGTERM) // before it handled the signal
	if killed {
		point := strings.TrimSpace(line)
		if point == "" {
			point = "anywhere"
		}
		f.kills[point]++
	}
	f.mu.Unlock()
	switch {
	case killed:
		assert.NoError(f.t, f.start(i))
	case !stopped:
		assert.NoError(f.t, err, "a worker must exit only on request")
	}
}

// killOne kills a random process from outside.
func (f *fleet) killOne() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for cmd := range f.cmds { // in random order
		_ = cmd.Process.Kill() // it may be dead already
		return
	}
}

// calm restarts all processes with the killing disabled.
func (f *fleet) calm() {
	f.mu.Lock()
	for i := range f.specs {
		f.specs[i].Death = 0
	}
	for cmd := range f.cmds {
		_ = cmd.Process.Kill()
	}
	f.mu.Unlock()
}

func (f *fleet) killed() (total int, points string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.kills {
		total += n
	}
	return total, fmt.Sprint(f.kills)
}

// stop shuts every process down gracefully.
func (f *fleet) stop() {
	f.mu.Lock()
	f.ended = true
	for cmd := range f.cmds {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	f.mu.Unlock()
	f.watchers.Wait()
}
