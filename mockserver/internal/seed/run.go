package seed

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// World is the gateway in which the entries are created. It is a copy, which the
// caller discards if Run fails.
type World struct {
	Store *store.Store
	Clock *clock.Clock // Run sets it back to the time of the first entry, then forward again
	// Call makes an API request.
	Call func(key string, op spec.Operation, body []byte) (status int, response []byte, err error)
	// Account is the key of the default account.
	Account string
	// Env is the environment of transitions, with its own id generator.
	Env     engine.Env
	Variant spec.Variant // of the API's rules
}

// run creates the entries of a file in a world.
type run struct {
	*File
	World

	end      time.Time
	schedule []action          // ordered by time
	named    map[string]*entry // by account and name
	ids      map[string]string // by name
}

// action is something to do at a given time.
type action struct {
	at time.Time
	do func()
}

// Run creates the entries and returns the ids of those that have a name. If an
// entry is invalid, the error is [Errors].
func (f *File) Run(ctx context.Context, w World) (ids map[string]string, err error) {
	r := &run{File: f, World: w, end: w.Clock.Now().UTC().Truncate(time.Millisecond), named: map[string]*entry{}, ids: map[string]string{}}
	first := r.end
	for _, e := range f.all() {
		if !e.at.IsZero() && e.at.Before(first) {
			first = e.at
		}
	}
	state := w.Clock.State()
	state.Now = first
	if err := w.Clock.Restore(state); err != nil {
		return nil, err
	}
	for _, e := range f.all() {
		if e.at.IsZero() {
			e.at = r.end
			if e.name == "customers" { // a customer exists before the entries that refer to it
				e.at = first
			}
		}
		if e.as != "" {
			r.named[e.account.path+"@"+e.as] = e
		}
		r.at(e.at, func() { r.create(e) })
	}
	for len(r.schedule) > 0 {
		next := r.schedule[0]
		r.schedule = r.schedule[1:]
		if err := w.Clock.AdvanceTo(ctx, later(w.Clock.Now(), next.at)); err != nil {
			return nil, err
		}
		next.do()
	}
	if err := w.Clock.AdvanceTo(ctx, later(w.Clock.Now(), r.end)); err != nil {
		return nil, err
	}
	if err := f.failed(); err != nil {
		return nil, err
	}
	for _, e := range f.all() {
		if e.state == "" {
			continue
		}
		if is := e.status(); is != e.state {
			f.fail(e.path+".state", "can't be reached: the final state is %s", is)
		}
	}
	return r.ids, f.failed()
}

func (f *File) all() (list []*entry) {
	for _, a := range f.accounts {
		list = append(list, a.entries...)
	}
	return list
}

// at schedules an action, after those with the same time.
func (r *run) at(at time.Time, do func()) {
	i := len(r.schedule)
	for i > 0 && r.schedule[i-1].at.After(at) {
		i--
	}
	r.schedule = slices.Insert(r.schedule, i, action{at, do})
}

func (r *run) key(e *entry) string {
	if e.account.key == "" {
		return r.Account
	}
	return e.account.key
}

// create creates an entry with an API request and plans the steps to its state.
func (r *run) create(e *entry) {
	complete := r.resolve(e)
	body, err := json.Marshal(e.body, json.Deterministic(true))
	if err != nil {
		r.fail(e.path, "%v", err)
		return
	}
	variant := r.Variant
	variant.Now = r.Clock.Now()
	violations, err := spec.Check(body, e.create.Rule, variant)
	for _, v := range violations {
		r.fail(e.path+"."+v.Field, "%s", v.Message)
	}
	if err != nil {
		r.fail(e.path, "%v", err)
	}
	if len(violations) > 0 || err != nil || !complete {
		return
	}
	status, response, err := r.Call(r.key(e), e.create, body)
	if err != nil {
		r.fail(e.path, "%v", err)
		return
	}
	if status >= 300 {
		r.rejected(e, status, response)
		return
	}
	var created struct {
		Data struct {
			ID  string `json:"id"`
			URL string `json:"url"`
		} `json:"data"`
	}
	if err := json.Unmarshal(response, &created); err != nil {
		r.fail(e.path, "%v", err)
		return
	}
	e.id = created.Data.ID
	if created.Data.URL != "" {
		e.id = path.Base(created.Data.URL) // the slug, which identifies a link
	}
	if e.as != "" {
		r.ids[e.as] = e.id
	}
	r.plan(e)
}

// resolve replaces references by ids. It reports whether all could be resolved.
func (r *run) resolve(e *entry) (complete bool) {
	complete = true
	for _, ref := range e.refs {
		outer, inner, nested := strings.Cut(ref, ".")
		if !nested {
			complete = r.resolveIn(e, e.body, outer, e.path+"."+ref) && complete
			continue
		}
		var members map[string]jsontext.Value
		if raw := e.body[outer]; raw.Kind() != '{' || json.Unmarshal(raw, &members) != nil {
			continue
		}
		complete = r.resolveIn(e, members, inner, e.path+"."+ref) && complete
		if raw, err := json.Marshal(members, json.Deterministic(true)); err == nil {
			e.body[outer] = raw
		}
	}
	return complete
}

func (r *run) resolveIn(e *entry, members map[string]jsontext.Value, name, place string) bool {
	var text string
	if raw := members[name]; raw.Kind() != '"' || json.Unmarshal(raw, &text) != nil || !strings.HasPrefix(text, "@") {
		return true
	}
	const placeholder = "00000000-0000-4000-8000-000000000000" // so that the other members are checked
	target := r.named[e.account.path+text]
	id := placeholder
	switch {
	case target == nil:
		r.fail(place, "%s is not the name of an entry of this account", text)
	case target.name != "customers":
		r.fail(place, "%s is one of the %s, but must be a customer", text, target.name)
	case target.id == "" && target.at.After(e.at):
		r.fail(place, "%s is created later than this entry", text)
	case target.id != "":
		id = target.id
	}
	members[name] = jsontext.Value(`"` + id + `"`)
	return id != placeholder
}

// rejected reports that the API rejected a request that the rules allow.
func (r *run) rejected(e *entry, status int, response []byte) {
	var problem struct {
		Detail  string           `json:"detail"`
		Message string           `json:"message"`
		Errors  []spec.Violation `json:"errors"`
	}
	if err := json.Unmarshal(response, &problem); err != nil {
		r.fail(e.path, "the request was rejected with status %d", status)
		return
	}
	for _, v := range problem.Errors {
		r.fail(e.path+"."+v.Field, "%s", v.Message)
	}
	if len(problem.Errors) > 0 {
		return
	}
	place := e.path
	if status == 401 || status == 403 {
		place = join(e.account.path, "key")
	}
	r.fail(place, "%s (status %d)", strings.TrimSuffix(problem.Detail+problem.Message, "."), status)
}

// plan schedules the steps to the entry's state.
func (r *run) plan(e *entry) {
	account := r.Store.Account(r.key(e))
	if e.failNext > 0 {
		if _, refusal := account.Subscription(e.id, func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
			return engine.FailNextCharges(env, s, e.failNext)
		}); refusal != nil {
			r.fail(e.path+".fail_next", "%s", refusal.Detail)
		}
	}
	if e.settled != nil {
		if _, refusal := account.Transaction(e.id, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.SettleFor(env, t, *e.settled)
		}); refusal != nil {
			r.fail(e.path+".settled_amount", "%s", refusal.Detail)
		}
	}
	if e.state == "" {
		return
	}
	var steps []step
	var possible []string
	switch e.name {
	case "transactions":
		steps, possible = planOf(r, transactions(r.Env, e.refunded), e, func(d *store.Data) *store.Table[engine.Transaction] { return &d.Transactions })
	case "transfers":
		steps, possible = planOf(r, transfers(), e, func(d *store.Data) *store.Table[engine.Transfer] { return &d.Transfers })
	case "subscriptions":
		steps, possible = planOf(r, subscriptions(), e, func(d *store.Data) *store.Table[engine.Subscription] { return &d.Subscriptions })
	case "links":
		steps, possible = planOf(r, links(), e, func(d *store.Data) *store.Table[engine.Link] { return &d.Links })
	}
	if possible != nil {
		r.fail(e.path+".state", "%q can't be reached; the possible states are %s", e.state, strings.Join(possible, ", "))
		return
	}
	for _, s := range steps {
		r.at(s.at, func() {
			if refusal := s.do(account, e.id); refusal != nil {
				r.fail(e.path+".state", "%q can't be reached: %s", e.state, refusal.Detail)
			}
		})
	}
}

// planOf finds the steps of one entry, and how to read its resource's state.
func planOf[R any](r *run, m machine[R], e *entry, table func(*store.Data) *store.Table[R]) (steps []step, possible []string) {
	stored := func() (resource *R) {
		r.Store.Account(r.key(e)).View(func(d *store.Data) { resource = table(d).Get(e.id) })
		return resource
	}
	e.status = func() string { return m.status(stored()) }
	from := future[R]{r: stored(), at: r.Clock.Now()}
	for _, t := range r.Clock.State().Timers {
		if t.Account == r.key(e) && t.ID == e.id {
			from.timers = append(from.timers, engine.Timer{At: t.At, Kind: engine.TimerKind(t.Kind), ID: t.ID})
		}
	}
	return m.plan(r.Env, from, r.end, e.state)
}
