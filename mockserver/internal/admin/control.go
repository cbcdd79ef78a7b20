package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/version"
	"github.com/gateway-go/gateway/mockserver/internal/control"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/duration"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// HealthView reports that the gateway is ready.
type HealthView struct {
	Status      string        `json:"status"`
	Environment string        `json:"environment"`
	Dialect     string        `json:"dialect"`
	Now         respond.Stamp `json:"now"`
	Version     string        `json:"version"` // of this module
}

func (p *Plane) health(*call) (any, error) {
	return HealthView{
		Status: "ok", Environment: p.core.Environment(), Dialect: p.core.Dialect.String(), Now: respond.Stamp(p.core.Clock.Now()),
		Version: version.Module(),
	}, nil
}

func (*Plane) assumptions(*call) (any, error) { return docs.Assumptions(), nil }

// openAPI writes the description of the interface in the server's dialect, or in the
// nearer one if it is a mixture.
func (p *Plane) openAPI(c *call) (any, error) {
	respond.WriteText(c.w, http.StatusOK, respond.JSON, docs.OpenAPI(p.core.Dialect.Nearest() == spec.LiveDialect))
	return nil, nil //nolint:nilnil // the response is written
}

func (*Plane) controlOpenAPI(c *call) (any, error) {
	respond.WriteText(c.w, http.StatusOK, respond.JSON, docs.ControlOpenAPI())
	return nil, nil //nolint:nilnil // the response is written
}

type resetView struct {
	Reset bool `json:"reset"`
}

// reset empties the caller's account: resources, webhooks, endpoints, faults with the
// requests that wait in them, revoked and replaced keys, and journal. The clock does not change.
func (p *Plane) reset(c *call) (any, error) {
	p.core.Faults.Abort(c.key)
	if refusal := p.core.Store.Account(c.key).Reset(); refusal != nil {
		return nil, refused(refusal)
	}
	if err := p.core.Sender.Reset(c.key); err != nil {
		return nil, err
	}
	p.core.Keys.Forget(c.key)
	p.core.Faults.Clear(c.key, false)
	p.core.Faults.Clear(c.key, true)
	p.core.Journal.Clear(c.key)
	p.core.Events.Publish(c.key, events.Event{Type: events.TypeReset, Reset: &events.ResetEvent{Cause: "reset"}})
	return resetView{true}, nil
}

type keyView struct {
	Revoked bool `json:"revoked"` // every call with the account's first key gets 401
}

func (p *Plane) keyRoutes() []Shape {
	return []Shape{
		{Method: http.MethodPost, Path: "key/revoke", Out: keyView{}, do: func(c *call) (any, error) {
			p.core.Keys.Revoke(c.key)
			return p.keys(c), nil
		}},
		{Method: http.MethodPost, Path: "key/restore", Out: keyView{}, do: func(c *call) (any, error) {
			p.core.Keys.Restore(c.key)
			return p.keys(c), nil
		}},
		withBody(Shape{Method: http.MethodPost, Path: "key/replace", Out: keyView{}}, p.replaceKey),
	}
}

func (p *Plane) keys(c *call) keyView { return keyView{p.core.Keys.Revoked(c.key)} }

type keyBody struct {
	Key string `json:"key"` // a new one, which no account uses
}

// replaceKey gives the account another key.
func (p *Plane) replaceKey(c *call, in keyBody) (any, error) {
	if err := p.core.API.ReplaceKey(c.key, in.Key); err != nil {
		return nil, invalid("%v", err)
	}
	return p.keys(c), nil
}

type reachableView struct {
	Reachable bool `json:"reachable"`
}

// reachable makes the whole gateway reachable or unreachable, for every
// account.
func (p *Plane) reachable(up bool) func(*call) (any, error) {
	return func(*call) (any, error) {
		p.core.Down(!up)
		return reachableView{up}, nil
	}
}

func (p *Plane) clockRoutes() []Shape {
	return []Shape{
		{Method: http.MethodGet, Path: "clock", Out: ClockView{}, do: p.clock},
		withBody(Shape{Method: http.MethodPost, Path: "clock/advance", Out: ClockView{}, Query: []string{"timeout"}}, p.advance),
		{Method: http.MethodGet, Path: "clock/timers", Out: []TimerView{}, do: p.timers},
	}
}

// ClockView is the time of the virtual clock.
type ClockView struct {
	Now respond.Stamp `json:"now"`
}

func (p *Plane) clock(*call) (any, error) { return ClockView{respond.Stamp(p.core.Clock.Now())}, nil }

// AdvanceBody has exactly one of its members.
type AdvanceBody struct {
	By   string `json:"by,omitzero"` // a duration, such as "40d" or "90m"
	To   string `json:"to,omitzero"` // a timestamp, such as "2027-02-01T00:00:00Z"
	Next bool   `json:"next,omitzero"`
}

func (p *Plane) advance(c *call, in AdvanceBody) (any, error) {
	by, err := duration.Parse(in.By)
	if err != nil && in.By != "" {
		return nil, invalid(`by must be a duration such as "90m", "12h" or "40d": %v`, err)
	}
	to, err := time.Parse(time.RFC3339, in.To)
	if err != nil && in.To != "" {
		return nil, invalid(`to must be a timestamp such as "2027-02-01T00:00:00Z", not %q`, in.To)
	}
	limit, err := c.timeout()
	if err != nil {
		return nil, err
	}
	ctx, cancel := deliver.WithPatience(c.r.Context(), limit)
	defer cancel()
	switch {
	case in.By != "" && in == AdvanceBody{By: in.By}:
		err = p.core.Clock.Advance(ctx, by)
	case in.To != "" && in == AdvanceBody{To: in.To}:
		err = p.core.Clock.AdvanceTo(ctx, to)
	case in == AdvanceBody{Next: true}:
		_, err = p.core.Clock.Next(ctx)
	default:
		return nil, invalid(`the body must have exactly one of {"by": "40d"}, {"to": "2027-02-01T00:00:00Z"} and {"next": true}`)
	}
	if errors.Is(err, deliver.ErrPatience) {
		err = &RefusedError{http.StatusConflict, "STILL_DELIVERING", fmt.Sprintf("webhooks are still being delivered after %s; "+
			"the clock has stopped at %s: advance it again, or set timeout", limit, p.core.Clock.Now().Format(time.RFC3339))}
	}
	if err != nil {
		return nil, err
	}
	return p.clock(c)
}

// TimerView is a timer that is due at a time.
type TimerView struct {
	At   respond.Stamp `json:"at"`
	Kind string        `json:"kind"`
	ID   string        `json:"id"`
}

func (p *Plane) timers(c *call) (any, error) {
	return p.timersThat(c, func(string) bool { return true }), nil
}

// timersThat lists the account's timers of the resources or deliveries whose id matches.
func (p *Plane) timersThat(c *call, match func(id string) bool) []TimerView {
	list := []TimerView{}
	for _, t := range p.core.Clock.Timers() {
		if t.Account == c.key && match(t.ID) {
			list = append(list, TimerView{respond.Stamp(t.At), t.Kind, t.ID})
		}
	}
	return list
}

func (p *Plane) controlRoutes() []Shape {
	list := []Shape{
		withBody(Shape{Method: http.MethodPost, Path: "legacy/payments/{id}/status", Out: legacyView{}}, p.legacyStatus),
	}
	for _, ctl := range control.All() {
		shape := Shape{
			Method: http.MethodPost, Path: ctl.Path(),
			do: func(c *call) (any, error) { return p.control(c, &ctl) },
		}
		if ctl.Resource() == checkout {
			shape.Out = linkView{}
		}
		switch ctl.Number.Member {
		case "count":
			shape.In = actionBody{}
		case "amount":
			shape.In = settleBody{}
		}
		list = append(list, shape)
	}
	return list
}

// checkout is the resource whose controls return a checkout link.
const checkout = "checkout"

type actionBody struct {
	Count *int `json:"count,omitzero"` // how many charges fail; fail-next only, default 1
}

type settleBody struct {
	Amount *int64 `json:"amount"` // in cents; 0 restores the amount that the buyer is charged
}

// number reads a control's number from the body.
func (c *call) number(n control.Number) (int64, error) {
	if n.Member == "amount" {
		var in settleBody
		if err := c.decode(&in); err != nil {
			return 0, err
		}
		if in.Amount == nil || *in.Amount < 0 {
			return 0, invalid(`the body must have an amount in cents, such as {"amount": 3815}; 0 restores the amount that the buyer is charged`)
		}
		return *in.Amount, nil
	}
	var in actionBody
	if err := c.decode(&in); err != nil {
		return 0, err
	}
	switch {
	case in.Count == nil:
		return n.Default, nil
	case n.Member == "":
		return 0, invalid("only fail-next accepts a count")
	case *in.Count < 0:
		return 0, invalid("count must not be negative")
	}
	return int64(*in.Count), nil
}

func (p *Plane) control(c *call, ctl *control.Control) (any, error) {
	number, err := c.number(ctl.Number)
	if err != nil {
		return nil, err
	}
	if refusal := ctl.Run(p.core.Store, c.key, c.args[0], number); refusal != nil {
		return nil, refused(refusal)
	}
	if ctl.Resource() == checkout {
		return p.link(c)
	}
	return p.after(c, "/v2/"+ctl.Resource()+"/"+url.PathEscape(c.args[0]))
}

// after returns a resource as the interface returns it.
func (p *Plane) after(c *call, path string) (any, error) {
	ctx := context.WithoutCancel(c.r.Context())                                                               // the change has been made: report it even if the caller has disconnected
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.core.API.ServeAs(c.key, w, r) }) // even if the key is revoked
	status, body, err := memory.Call(ctx, own, c.key, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	var envelope struct {
		Data   jsontext.Value `json:"data"`
		Detail string         `json:"detail"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, err
	}
	if envelope.Data == nil {
		return nil, &RefusedError{status, "READ_FAILED", "the change was made, but the resource can't be read: " + envelope.Detail}
	}
	return envelope.Data, nil
}

type linkView struct {
	Slug      string        `json:"slug"`
	Status    string        `json:"status"`
	UsedCount int           `json:"used_count"`
	Sessions  []sessionView `json:"sessions"`
}

type sessionView struct {
	ID            string `json:"id"`
	Status        string `json:"status"`
	TransactionID string `json:"transaction_id"` // "" before the payment begins
}

// link returns a checkout link. Reading it through the interface would open a
// session.
func (p *Plane) link(c *call) (any, error) {
	var v linkView
	p.core.Store.Account(c.key).View(func(d *store.Data) {
		l := d.Links.Get(c.args[0])
		if l == nil {
			return
		}
		v = linkView{Slug: l.Slug, Status: l.Status, UsedCount: l.UsedCount, Sessions: []sessionView{}}
		for _, s := range d.SessionsOf(l) {
			v.Sessions = append(v.Sessions, sessionView{s.ID, s.Status, s.TransactionID})
		}
	})
	return v, nil
}

type legacyView struct {
	TransactionID string `json:"transactionId"`
	Status        string `json:"status"`
}

type legacyStatusBody struct {
	Status string `json:"status"`
}

func (p *Plane) legacyStatus(c *call, in legacyStatusBody) (any, error) {
	if in.Status == "" {
		return nil, invalid(`the body must have a status, such as {"status": "PAID"}`)
	}
	if refusal := control.SetLegacyStatus(p.core.Store, c.key, c.args[0], in.Status); refusal != nil {
		return nil, refused(refusal)
	}
	v := legacyView{TransactionID: c.args[0]}
	p.core.Store.Account(c.key).View(func(d *store.Data) {
		if t := d.Transactions.Get(c.args[0]); t != nil {
			v.Status = t.LegacyStatus()
		}
	})
	return v, nil
}
