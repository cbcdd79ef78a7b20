package admin

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/snapfile"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// maxSnapshots is the maximum number of snapshots; each is a whole server.
const maxSnapshots = 16

// saved is a snapshot in memory. It contains keys: its bytes are returned only
// as a file.
type saved struct {
	id    string
	at    respond.Stamp
	bytes []byte
}

func (p *Plane) snapshotRoutes() []Shape {
	return []Shape{
		{Method: http.MethodPost, Path: "seed", In: seedFile{}, Out: map[string]string{}, Long: true, do: p.seed},
		{Method: http.MethodGet, Path: "seed", Out: map[string]string{}, do: p.seeded},
		{Method: http.MethodGet, Path: "snapshot", Out: snapfile.File{}, Whole: true, do: p.download},
		{Method: http.MethodPut, Path: "snapshot", In: snapfile.File{}, Out: ClockView{}, Long: true, do: p.upload},
		{Method: http.MethodGet, Path: "snapshots/{id}", Out: snapfile.File{}, Whole: true, do: p.downloadSaved},
		{Method: http.MethodPost, Path: "snapshots", Out: snapshotView{}, do: p.snapshot},
		{Method: http.MethodGet, Path: "snapshots", Out: []snapshotView{}, do: p.snapshotList},
		{Method: http.MethodPost, Path: "snapshots/{id}/restore", Out: snapshotView{}, do: p.restore},
		{Method: http.MethodDelete, Path: "snapshots/{id}", Out: snapshotView{}, do: p.forget},
	}
}

// seedFile describes a seed file for its OpenAPI document; package seed reads
// it.
type seedFile struct {
	Schema        string           `json:"$schema,omitzero"`
	Webhooks      bool             `json:"webhooks,omitzero"` // whether the events are delivered; default false
	Customers     []jsontext.Value `json:"customers,omitzero"`
	Links         []jsontext.Value `json:"links,omitzero"`
	Transactions  []jsontext.Value `json:"transactions,omitzero"`
	Transfers     []jsontext.Value `json:"transfers,omitzero"`
	Subscriptions []jsontext.Value `json:"subscriptions,omitzero"`
	Accounts      []jsontext.Value `json:"accounts,omitzero"` // other accounts: their key, and the same members
}

// seed creates what a file describes, its top level in the caller's account.
func (p *Plane) seed(c *call) (any, error) { return p.core.Seed("", c.body, c.key) }

// seeded returns the ids of the named entries of the caller's seed files.
func (p *Plane) seeded(c *call) (any, error) {
	ids := p.core.Seeded(c.key)
	if ids == nil {
		ids = map[string]string{}
	}
	return ids, nil
}

type snapshotView struct {
	ID    string        `json:"id"`
	At    respond.Stamp `json:"at"`
	Bytes int           `json:"bytes"`
}

func (s saved) view() snapshotView { return snapshotView{s.id, s.at, len(s.bytes)} }

// download writes the server's state as a file.
func (p *Plane) download(c *call) (any, error) {
	now := p.core.Clock.Now()
	b, err := p.core.Snapshot()
	if err != nil {
		return nil, err
	}
	c.file(now.UTC().Format("20060102T150405Z"), b)
	return nil, nil //nolint:nilnil // the response is written
}

// downloadSaved writes a snapshot that was taken as a file.
func (p *Plane) downloadSaved(c *call) (any, error) {
	p.mu.Lock()
	i, err := p.saved(c)
	if err != nil {
		p.mu.Unlock()
		return nil, err
	}
	s := p.snapshots[i]
	p.mu.Unlock() // before a slow reader
	c.file(s.id, s.bytes)
	return nil, nil //nolint:nilnil // the response is written
}

// file writes a snapshot as a download that no cache stores.
func (c *call) file(name string, b []byte) {
	h := c.w.Header()
	h.Set("Content-Disposition", `attachment; filename="mockgateway-`+name+`.json"`)
	h.Set("Cache-Control", "no-store")
	respond.WriteText(c.w, http.StatusOK, respond.JSON, b)
}

// upload puts the server into the state of a file.
func (p *Plane) upload(c *call) (any, error) {
	if err := p.core.Restore(c.body); err != nil {
		return nil, err
	}
	return p.clock(c)
}

func (p *Plane) snapshot(*call) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.snapshots) == maxSnapshots {
		return nil, &RefusedError{http.StatusConflict, "TOO_MANY_SNAPSHOTS", fmt.Sprintf("there are already %d snapshots; delete one", maxSnapshots)}
	}
	at := respond.Stamp(p.core.Clock.Now())
	b, err := p.core.Snapshot()
	if err != nil {
		return nil, err
	}
	if !p.core.Memory.Fits(int64(len(b))) {
		return nil, &RefusedError{http.StatusInsufficientStorage, engine.CodeMemoryLimit, fmt.Sprintf(
			"the snapshot of %d bytes does not fit into the memory limit; delete another one, or raise the limit", len(b))}
	}
	p.core.Memory.Add(int64(len(b)))
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
	i, err := p.saved(c)
	if err != nil {
		return nil, err
	}
	s := p.snapshots[i]
	return s.view(), p.core.Restore(s.bytes)
}

func (p *Plane) forget(c *call) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, err := p.saved(c)
	if err != nil {
		return nil, err
	}
	s := p.snapshots[i]
	p.snapshots = slices.Delete(p.snapshots, i, i+1)
	p.core.Memory.Add(-int64(len(s.bytes)))
	return s.view(), nil
}

func (p *Plane) saved(c *call) (int, error) {
	i := slices.IndexFunc(p.snapshots, func(s saved) bool { return s.id == c.args[0] })
	if i < 0 {
		return 0, &RefusedError{http.StatusNotFound, "NOT_FOUND", "no snapshot has this id"}
	}
	return i, nil
}

// metrics writes the gateway's metrics in the Prometheus text format.
func (p *Plane) metrics(c *call) (any, error) {
	var b bytes.Buffer
	head := func(kind, name, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	one := func(kind, name, help string, value any) {
		head(kind, name, help)
		fmt.Fprintf(&b, "%s %d\n", name, value)
	}
	one("gauge", "mockgateway_clock_seconds", "The virtual clock, in Unix seconds.", p.core.Clock.Now().Unix())
	one("gauge", "mockgateway_timers", "Pending timers.", p.core.Clock.Len())
	one("counter", "mockgateway_timer_failures_total", "Due timers that failed, for example on a full server, and will be retried.", p.core.Clock.Failures())
	one("gauge", "mockgateway_accounts", "Open accounts.", len(p.core.Store.Accounts()))
	head("gauge", "mockgateway_records", "Resources in all accounts, by kind.")
	counts := p.records()
	for i, kind := range [...]string{"transaction", "transfer", "subscription", "customer", "checkout_link"} {
		fmt.Fprintf(&b, "mockgateway_records{kind=%q} %d\n", kind, counts[i])
	}
	one("gauge", "mockgateway_memory_bytes", "Approximate memory that counts towards the memory limit.", p.core.Memory.Used())
	head("gauge", "mockgateway_deliveries", "Webhook deliveries in memory, by state.")
	states := p.core.Sender.Count()
	for _, state := range deliver.States() {
		fmt.Fprintf(&b, "mockgateway_deliveries{state=%q} %d\n", state, states[state])
	}
	head("counter", "mockgateway_requests_total", "Requests by response status, 0 if none was sent.")
	statuses := p.core.Journal.Statuses()
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		fmt.Fprintf(&b, "mockgateway_requests_total{status=\"%d\"} %d\n", status, statuses[status])
	}
	c.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, err := c.w.Write(b.Bytes())
	return nil, err
}

func (p *Plane) records() (counts [5]int) {
	for _, key := range p.core.Store.Accounts() {
		p.core.Store.Account(key).View(func(d *store.Data) {
			for i, n := range []int{d.Transactions.Len(), d.Transfers.Len(), d.Subscriptions.Len(), d.Customers.Len(), d.Links.Len()} {
				counts[i] += n
			}
		})
	}
	return counts
}
