package admin

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// maxSnapshots is how many are kept; they are whole servers.
const maxSnapshots = 16

// saved is a snapshot in memory. It holds keys, so its bytes are never shown.
type saved struct {
	id    string
	at    respond.Stamp
	bytes []byte
}

func (p *Plane) snapshotRoutes() []route {
	return []route{
		{method: http.MethodPost, path: "snapshots", do: p.snapshot},
		{method: http.MethodGet, path: "snapshots", do: p.snapshotList},
		{method: http.MethodPost, path: "snapshots/{id}/restore", do: p.restore},
		{method: http.MethodDelete, path: "snapshots/{id}", do: p.forget},
	}
}

type snapshotView struct {
	ID    string        `json:"id"`
	At    respond.Stamp `json:"at"`
	Bytes int           `json:"bytes"`
}

func (s saved) view() snapshotView { return snapshotView{s.id, s.at, len(s.bytes)} }

func (p *Plane) snapshot(*call) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.snapshots) == maxSnapshots {
		return nil, &RefusedError{http.StatusConflict, "TOO_MANY_SNAPSHOTS", fmt.Sprintf("%d snapshots are kept already; delete one", maxSnapshots)}
	}
	at := respond.Stamp(p.cfg.Clock.Now())
	b, err := p.cfg.Snapshot()
	if err != nil {
		return nil, err
	}
	if !p.cfg.Room.Fits(int64(len(b))) {
		return nil, &RefusedError{http.StatusInsufficientStorage, engine.CodeMemoryLimit, fmt.Sprintf(
			"the snapshot of %d bytes does not fit into the memory limit; delete another one, or raise the limit", len(b))}
	}
	p.cfg.Room.Add(int64(len(b)))
	p.made++
	s := saved{"snap_" + strconv.Itoa(p.made), at, b}
	p.snapshots = append(p.snapshots, s)
	return s.view(), nil
}

func (p *Plane) snapshotList(*call) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []snapshotView{}
	for _, s := range p.snapshots {
		list = append(list, s.view())
	}
	return list, nil
}

func (p *Plane) restore(c *call) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.snapshots {
		if s.id == c.args[0] {
			return s.view(), p.cfg.Restore(s.bytes)
		}
	}
	return nil, errNoSnapshot()
}

func (p *Plane) forget(c *call) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.snapshots {
		if s.id == c.args[0] {
			p.snapshots = append(p.snapshots[:i], p.snapshots[i+1:]...)
			p.cfg.Room.Add(-int64(len(s.bytes)))
			return s.view(), nil
		}
	}
	return nil, errNoSnapshot()
}

func errNoSnapshot() error {
	return &RefusedError{http.StatusNotFound, "NOT_FOUND", "no snapshot has this id"}
}

// metrics writes the gateway's numbers in Prometheus' text format.
func (p *Plane) metrics(c *call) (any, error) {
	var b bytes.Buffer
	gauge := func(name, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name) }

	gauge("mockgateway_clock_seconds", "The virtual clock, in Unix seconds.")
	fmt.Fprintf(&b, "mockgateway_clock_seconds %d\n", p.cfg.Clock.Now().Unix())
	gauge("mockgateway_timers", "Timers that wait.")
	fmt.Fprintf(&b, "mockgateway_timers %d\n", p.cfg.Clock.Len())
	fmt.Fprintf(&b, "# HELP mockgateway_timer_failures_total Due timers that failed, such as on a full server, and will be tried again.\n"+
		"# TYPE mockgateway_timer_failures_total counter\nmockgateway_timer_failures_total %d\n", p.cfg.Clock.Failures())
	gauge("mockgateway_accounts", "Accounts that were opened.")
	fmt.Fprintf(&b, "mockgateway_accounts %d\n", len(p.cfg.Store.Accounts()))
	gauge("mockgateway_records", "Records of all accounts.")
	for _, n := range p.records() {
		fmt.Fprintf(&b, "mockgateway_records{kind=%q} %d\n", n.kind, n.count)
	}
	gauge("mockgateway_memory_bytes", "About what counts towards the memory limit.")
	fmt.Fprintf(&b, "mockgateway_memory_bytes %d\n", p.cfg.Room.Used())
	gauge("mockgateway_deliveries", "Webhook deliveries that are remembered.")
	states := p.cfg.Sender.Count()
	for _, state := range []deliver.State{
		deliver.Pending, deliver.Delivered, deliver.Failed, deliver.Held, deliver.Dropped, deliver.NoEndpoint,
	} {
		fmt.Fprintf(&b, "mockgateway_deliveries{state=%q} %d\n", state, states[state])
	}
	fmt.Fprintf(&b, "# HELP mockgateway_requests_total Requests by response status, 0 if none was sent.\n"+
		"# TYPE mockgateway_requests_total counter\n")
	for _, n := range p.cfg.Journal.Statuses() {
		fmt.Fprintf(&b, "mockgateway_requests_total{status=\"%d\"} %d\n", n.Status, n.Count)
	}
	c.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, err := c.w.Write(b.Bytes())
	return nil, err
}

type counted struct {
	kind  string
	count int
}

func (p *Plane) records() []counted {
	list := []counted{{kind: "transaction"}, {kind: "transfer"}, {kind: "subscription"}, {kind: "customer"}, {kind: "checkout_link"}}
	for _, key := range p.cfg.Store.Accounts() {
		p.cfg.Store.Account(key).View(func(d *store.Data) {
			for i, n := range []int{d.Transactions.Len(), d.Transfers.Len(), d.Subscriptions.Len(), d.Customers.Len(), d.Links.Len()} {
				list[i].count += n
			}
		})
	}
	return list
}
