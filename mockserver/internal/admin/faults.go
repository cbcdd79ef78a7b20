package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gateway-go/gateway/mockserver/internal/duration"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/journal"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

func (p *Plane) faultRoutes() []Shape {
	return []Shape{
		withBody(Shape{Method: http.MethodPost, Path: "faults", Out: FaultView{}}, p.addFault),
		{Method: http.MethodGet, Path: "faults", Out: []FaultView{}, do: p.faults},
		{Method: http.MethodDelete, Path: "faults", Out: []FaultView{}, do: p.clearFaults(false)},
		{Method: http.MethodDelete, Path: "deliveries/faults", Out: []FaultView{}, do: p.clearFaults(true)},
		{Method: http.MethodDelete, Path: "faults/{id}", Out: FaultView{}, do: p.removeFault},
		{Method: http.MethodGet, Path: "requests", Out: foundView{}, Query: []string{"match"}, Whole: true, do: p.requests},
		{Method: http.MethodPost, Path: "requests/wait", Out: []requestView{}, Query: []string{"match", "count", "timeout"}, do: p.waitForRequests},
		{Method: http.MethodDelete, Path: "requests", Out: []requestView{}, do: p.clearRequests},
	}
}

// FaultView is a fault and how often it has occurred.
type FaultView struct {
	ID          string  `json:"id"`
	Fault       string  `json:"fault"`
	On          string  `json:"on"`
	Times       int     `json:"times"`
	Nth         int     `json:"nth"`
	Probability float64 `json:"probability"`
	Seen        int     `json:"seen"`
	Fired       int     `json:"fired"`

	Until respond.Stamp `json:"until,omitzero"` // its end on the virtual clock; absent for none
}

// FaultBody is a fault to add.
type FaultBody struct {
	Fault       string   `json:"fault"`                // such as "status=503; retry-after=2"
	On          string   `json:"on,omitzero"`          // an operation or path, maybe after a method, or a kind of webhook; every request if omitted
	Times       *int     `json:"times,omitzero"`       // at least 1; how often it fires
	Nth         *int     `json:"nth,omitzero"`         // at least 1; only the nth match
	Probability *float64 `json:"probability,omitzero"` // 0 to 1, from the seed
	For         string   `json:"for,omitzero"`         // a duration on the virtual clock, such as "10m", after which it ends
}

func (p *Plane) addFault(c *call, in FaultBody) (any, error) {
	f, err := faults.Parse(in.Fault)
	if err != nil {
		return nil, invalid("%v", err) // it begins with the fault
	}
	f.Account, f.On = c.key, in.On
	if in.For != "" {
		if f.For, err = duration.Parse(in.For); err != nil || f.For <= 0 {
			return nil, invalid("for must be a duration above zero on the virtual clock, such as 10m, not %.40q", in.For)
		}
	}
	for name, given := range map[string]*int{"times": in.Times, "nth": in.Nth} {
		if given != nil && *given < 1 {
			return nil, invalid("%s must be at least 1; omit it for no restriction", name)
		}
	}
	if in.Times != nil {
		f.Times = *in.Times
	}
	if in.Nth != nil {
		f.Nth = *in.Nth
	}
	if in.Probability != nil {
		f.Probability, f.Never = *in.Probability, *in.Probability == 0
	}
	id, err := p.core.Faults.Add(f)
	if err != nil {
		return nil, rejected(err)
	}
	for _, r := range p.core.Faults.Reports(c.key) {
		if r.ID == id {
			return viewFault(r), nil
		}
	}
	return viewFault(faults.Report{ID: id, Fault: f}), nil // it was removed meanwhile
}

func viewFault(r faults.Report) FaultView {
	v := FaultView{
		ID: r.ID, Fault: r.Fault.String(), On: r.Fault.On, Times: r.Fault.Times, Nth: r.Fault.Nth,
		Probability: r.Fault.Probability, Seen: r.Seen, Fired: r.Fired, Until: respond.Stamp(r.Until),
	}
	if v.Probability == 0 && !r.Fault.Never {
		v.Probability = 1
	}
	return v
}

func (p *Plane) faults(c *call) (any, error) {
	list := []FaultView{}
	for _, r := range p.core.Faults.Reports(c.key) {
		list = append(list, viewFault(r))
	}
	return list, nil
}

// clearFaults removes the faults of requests, or those of webhooks, and returns
// those that remain.
func (p *Plane) clearFaults(webhooks bool) func(*call) (any, error) {
	return func(c *call) (any, error) {
		p.core.Faults.Clear(c.key, webhooks)
		return p.faults(c)
	}
}

func (p *Plane) removeFault(c *call) (any, error) {
	for _, r := range p.core.Faults.Reports(c.key) {
		if r.ID == c.args[0] && p.core.Faults.Remove(c.key, r.ID) {
			return viewFault(r), nil
		}
	}
	return nil, &RefusedError{http.StatusNotFound, "NOT_FOUND", "no fault has this id"}
}

type requestView struct {
	ID             uint64        `json:"id"`
	At             respond.Stamp `json:"at"`
	Operation      string        `json:"operation"`
	Method         string        `json:"method"`
	Path           string        `json:"path"`
	Query          string        `json:"query"`
	Header         http.Header   `json:"header"`
	Body           string        `json:"body"`
	Status         int           `json:"status"`
	ResponseHeader http.Header   `json:"response_header"`
	Response       string        `json:"response"`
	DurationMS     float64       `json:"duration_ms"`
	Fault          string        `json:"fault"`
	Broken         bool          `json:"broken"`

	Rejection *rejectionView `json:"rejection,omitzero"` // absent if the request was not rejected
}

func viewRequests(entries []journal.Entry) []requestView {
	list := []requestView{}
	for _, e := range entries {
		list = append(list, requestView{
			ID: e.ID, At: respond.Stamp(e.At), Operation: e.Operation, Method: e.Method, Path: e.Path, Query: e.Query,
			Header: e.Header, Body: e.Body, Status: e.Status, ResponseHeader: e.ResponseHeader, Response: e.Response,
			DurationMS: float64(e.Duration.Microseconds()) / 1000, Fault: e.Fault, Broken: e.Broken,
			Rejection: rejectionOf(e),
		})
	}
	return list
}

type foundView struct {
	Data       []requestView `json:"data"`
	Count      int           `json:"count"`
	InFlight   []requestView `json:"in_flight"`
	NearMisses []requestView `json:"near_misses"`
}

// requests lists the account's requests, the oldest first, and those that are in flight;
// match filters them, and if none matches, near_misses has the most similar ones.
func (p *Plane) requests(c *call) (any, error) {
	match := c.r.URL.Query().Get("match")
	flying := viewRequests(p.core.Journal.InFlight(c.key, match)) // before those that ended, so that none is missing
	v := foundView{Data: viewRequests(p.core.Journal.Find(c.key, match)), InFlight: flying, NearMisses: []requestView{}}
	v.Count = len(v.Data)
	if v.Count == 0 && len(flying) == 0 {
		v.NearMisses = viewRequests(p.core.Journal.NearMisses(c.key, match))
	}
	respond.Write(c.w, http.StatusOK, respond.JSON, v)
	return nil, nil //nolint:nilnil // the response is written
}

// waitForRequests returns the account's requests that match when there are at least count.
func (p *Plane) waitForRequests(c *call) (any, error) {
	q := c.r.URL.Query()
	n, match := 1, q.Get("match")
	if text := q.Get("count"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > journal.Size {
			return nil, invalid("count must be a number of requests from 1 to %d, not %.20q", journal.Size, text)
		}
	}
	limit, err := c.timeout()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), limit)
	defer cancel()
	found, err := p.core.Journal.Wait(ctx, c.key, match, n)
	if err != nil {
		return nil, &RefusedError{http.StatusConflict, "STILL_WAITING", fmt.Sprintf(
			"after %s %s", limit, p.core.Journal.Missing(c.key, match, n, len(found)))}
	}
	return viewRequests(found), nil
}

func (p *Plane) clearRequests(c *call) (any, error) {
	p.core.Journal.Clear(c.key)
	return []requestView{}, nil
}
