package money_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/intent"
	"github.com/gateway-go/gateway/contrib/mcp/money"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/mockserver"
)

// The faults of a write. Everything but the first may make an agent pay again.
const (
	noFault = iota
	lostResponse
	reset // before the request arrives
	unavailable
	late        // the request arrives after the call
	crashBefore // the process dies
	crashAfter
	poor // from now on the gateway rejects every create, before it looks at the reference
	faults
)

// The steps of an agent that does everything it should not.
const (
	commit  = iota
	replay  // the last question is decided again, with yes
	prepare // the same again
	edit    // the same purpose with another amount
	invent  // another purpose for the same
	forge   // yes to the question of one intent for another
	restart
	other // goes on in another process
	wait  // until a refund has settled
	lose  // the journal
	steps
)

var stepNames = [...]string{"commit", "replay", "prepare", "edit", "invent", "forge", "restart", "other process", "wait", "lose the journal"}

const (
	amount = 5000
	edited = 7000
)

var errCrash = errors.New("the process dies")

// defect is a mistake that the exploration must find.
type defect struct {
	name       string
	refund     bool
	dropRounds bool
	change     func(w *world, body map[string]any) // changes a write on its way
	resend     bool                                // a lost response is sent again at once
	blind      bool                                // nothing is read after rejections
}

// world is one run: a gateway account, a journal and two processes with an agent.
type world struct {
	t      *testing.T
	run    *explore.Run
	server *mockserver.Server
	key    string
	defect defect
	refund bool

	path    string
	shift   time.Duration
	planes  [2]*money.Plane
	open    []*intent.Journal
	current int

	intents       []string // ids, the newest last
	state, asked  string   // of the last question and its intent
	transactionID string
	late          []*http.Request
	poor          bool
	lost          bool            // a journal was lost
	seen          map[string]bool // references that were sent

	accepted map[string]bool // purpose and amount that the person accepted
	target   int64           // of the refunds that the person accepted
	trace    []string
	sends    int
}

// Now is the machine's time, later by what the agent has waited.
func (w *world) Now() time.Time { return time.Now().Add(w.shift) }

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *world) start() {
	for _, j := range w.open {
		_ = j.Close()
	}
	w.open = nil
	limits := intent.Limits{}
	for _, text := range []string{"payout=100000/day", "refund=100000/day"} {
		if err := limits.Set(text); err != nil {
			w.t.Fatal(err)
		}
	}
	client, err := gateway.New(mockserver.BaseURL, gateway.BearerToken(w.key),
		gateway.WithHTTPClient(&http.Client{Transport: w}), gateway.WithAccount("shop"))
	if err != nil {
		w.t.Fatal(err)
	}
	sealer, err := intent.NewSealer(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		w.t.Fatal(err)
	}
	for n := range w.planes {
		j, err := intent.Open(w.path, intent.Config{Account: "shop", Limits: limits, ClientBelow: 1e9, Now: w.Now})
		if err != nil {
			w.t.Fatal(err)
		}
		w.open = append(w.open, j)
		w.planes[n], err = money.NewPlane(money.Config{Client: client, Journal: j, Sealer: sealer, Now: w.Now})
		if err != nil {
			w.t.Fatal(err)
		}
		if w.defect.dropRounds {
			w.planes[n].DropRounds()
		}
		if w.defect.blind {
			w.planes[n].DropReads()
		}
	}
}

// RoundTrip is the network between the server and the gateway.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return w.pass(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.sends++
	body = w.changed(body)
	again := func() *http.Request {
		c := r.Clone(context.Background())
		c.Body = io.NopCloser(bytes.NewReader(body))
		c.ContentLength = int64(len(body))
		return c
	}
	fault := noFault
	if w.sends <= 2 { // with more, the runs only repeat themselves
		fault = w.run.Choose(faults)
	}
	w.note("  send %s %s: fault %d", r.Method, body, fault)
	if w.poor = w.poor || fault == poor; w.poor { // and what is under way is still later
		return &http.Response{
			StatusCode: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {"application/problem+json"}},
			Body: io.NopCloser(strings.NewReader(`{"title":"Insufficient balance","status":422,"code":"INSUFFICIENT_FUNDS"}`)), Request: r,
		}, nil
	}
	w.arrive()
	switch fault {
	case unavailable:
		return &http.Response{
			StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Content-Type": {"application/problem+json"}},
			Body: io.NopCloser(strings.NewReader(`{"status":503}`)), Request: r,
		}, nil
	case reset:
		return nil, syscall.ECONNRESET
	case late:
		w.late = append(w.late, again())
		return nil, syscall.ECONNRESET
	case crashBefore:
		panic(errCrash)
	}
	res, err := w.pass(again())
	switch {
	case fault == noFault || err != nil:
		return res, err
	case w.defect.resend:
		_ = res.Body.Close()
		if w.defect.change != nil {
			body = w.changed(body)
		}
		return w.pass(again())
	}
	_ = res.Body.Close()
	if fault == crashAfter {
		panic(errCrash)
	}
	return nil, syscall.ECONNRESET
}

func (w *world) pass(r *http.Request) (*http.Response, error) {
	return w.server.Transport().RoundTrip(r)
}

// changed applies the defect to a body.
func (w *world) changed(body []byte) []byte {
	if w.defect.change == nil {
		return body
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		w.t.Fatal(err)
	}
	w.defect.change(w, fields)
	out, err := json.Marshal(fields)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// arrive delivers the requests that were under way.
func (w *world) arrive() {
	for _, r := range w.late {
		if res, err := w.pass(r); err == nil {
			_ = res.Body.Close()
		}
	}
	w.late = nil
}

// crashed runs a call of a tool, and restarts the processes if it dies in it.
func (w *world) crashed(call func()) {
	defer func() {
		if r := recover(); r != nil {
			if err, ok := r.(error); !ok || !errors.Is(err, errCrash) {
				panic(r)
			}
			w.note("  the process died")
			w.start()
		}
	}()
	call()
}

func (w *world) prepare(purpose string, cents int64) {
	var r *money.Result
	plane := w.planes[w.current]
	if w.refund {
		r = plane.Refund(w.t.Context(), money.RefundInput{For: purpose, TransactionID: w.transactionID, UpTo: cents})
	} else {
		r = plane.Payout(w.t.Context(), money.PayoutInput{For: purpose, PixKeyType: "EMAIL", PixKey: "ana@example.com", Amount: cents})
	}
	w.note("  %s %s %s", r.Intent, r.State, r.Sentinel)
	if !r.Failed() {
		w.intents = append(w.intents, r.Intent)
	}
}

// commit commits an intent. The person decides as the run chooses.
func (w *world) commit(id string) {
	r, asked, text, state := w.planes[w.current].Commit(w.t.Context(), id, true, "", false, false)
	if !asked {
		w.note("  %s %s", r.State, r.Sentinel)
		return
	}
	w.state, w.asked = state, id
	yes := w.run.Choose(2) == 0
	if yes {
		w.accept(text)
	}
	w.note("  %s %t", text, yes)
	r, _, _, _ = w.planes[w.current].Commit(w.t.Context(), id, true, state, true, yes)
	w.note("  %s %s", r.State, r.Sentinel)
}

// accept remembers what the person accepted, as the question says it.
func (w *world) accept(text string) {
	w.accepted[text] = true
	for _, cents := range []int64{amount, edited} {
		if strings.Contains(text, gateway.FormatAmount(cents, gateway.BRL)) {
			w.target = max(w.target, cents)
		}
	}
}

// confirm says yes although the person was not asked.
func (w *world) confirm(id string) {
	if w.state == "" {
		return
	}
	r, _, _, _ := w.planes[w.current].Commit(w.t.Context(), id, true, w.state, true, true)
	w.note("  %s %s", r.State, r.Sentinel)
}

func (w *world) step(step int) {
	w.note("%s", stepNames[step])
	last := w.intents[len(w.intents)-1]
	switch step {
	case commit:
		w.commit(last)
	case replay:
		w.confirm(w.asked)
	case prepare:
		w.prepare("invoice 17", amount)
	case edit:
		w.prepare("invoice 17", edited)
	case invent:
		w.prepare("invoice-17-retry", amount)
	case forge:
		w.confirm(last)
	case restart:
		w.start()
	case other:
		w.current = 1 - w.current
	case wait:
		w.arrive()
		w.shift += 3 * time.Minute
	case lose:
		if w.refund { // a refund has no reference: its journal is its only memory
			return
		}
		if err := os.Remove(w.path); err != nil {
			w.t.Fatal(err)
		}
		w.lost = true
		w.start()
		w.prepare("invoice 17", amount)
	}
}

// play runs one sequence and returns what went wrong.
func (w *world) play(depth int) error {
	w.start()
	defer func() {
		for _, j := range w.open {
			_ = j.Close()
		}
	}()
	w.crashed(func() { w.prepare("invoice 17", amount) })
	for range depth {
		w.crashed(func() { w.step(w.run.Choose(steps)) })
	}
	// A host that follows do_next to the end: at first at once, then when it may.
	for round := range 2 + 2*intent.Reads { // rejections, then reads
		if round >= 2 {
			w.arrive() // before the gateway's time to apply a request has passed
			w.shift += 3 * time.Minute
		}
		for _, id := range w.intents {
			w.crashed(func() {
				r, asked, _, _ := w.planes[0].Commit(w.t.Context(), id, true, "", false, false)
				if !asked {
					w.note("at the end %s %s %s", id, r.State, r.Sentinel)
				}
			})
		}
	}
	if err := w.check(); err != nil {
		return err
	}
	return w.told()
}

// client is one without the world's network.
func (w *world) client() *gateway.Client {
	client, err := gateway.New(mockserver.BaseURL, gateway.BearerToken(w.key), gateway.WithHTTPClient(&http.Client{Transport: w.server.Transport()}))
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// check compares what the gateway moved with what a person accepted.
func (w *world) check() error {
	client := w.client()
	if w.refund {
		t, err := client.Transactions.Get(w.t.Context(), w.transactionID)
		if err == nil && t.RefundedAmount > w.target {
			err = fmt.Errorf("%d cents are refunded, and a person accepted %d", t.RefundedAmount, w.target)
		}
		return err
	}
	made, err := gateway.Collect(client.Transfers.All(w.t.Context(), gateway.TransferListParams{Limit: 100}), 0)
	if err != nil {
		return err
	}
	sum := map[string]int{}
	for _, t := range made {
		purpose := map[string]string{
			intent.Reference(intent.Payout, "shop", "invoice-17", 1):       "invoice 17",
			intent.Reference(intent.Payout, "shop", "invoice-17-retry", 1): "invoice-17-retry",
		}[t.ExternalRef]
		question := fmt.Sprintf("Pay %s to the Pix key EMAIL ana@example.com for %q?", gateway.FormatAmount(t.Amount, gateway.BRL), purpose)
		if !w.accepted[question] {
			return fmt.Errorf("%d cents were paid with the reference %s, and no one accepted it", t.Amount, t.ExternalRef)
		}
		if sum[purpose]++; sum[purpose] > 1 {
			return fmt.Errorf("%s was paid twice", purpose)
		}
	}
	return nil
}

// told checks what the agent was told at the end: that nothing was paid only if nothing
// was, and not that it is unknown, since every request had its time.
func (w *world) told() error {
	if w.refund || w.lost { // an intent that is gone may have paid
		return nil
	}
	all, err := w.open[0].List("")
	if err != nil {
		return err
	}
	made, err := gateway.Collect(w.client().Transfers.All(w.t.Context(), gateway.TransferListParams{Limit: 100}), 0)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.State == intent.Unknown || i.State == intent.Sending {
			return fmt.Errorf("%s stays %s: %s", i.ID, i.State, i.Ambiguity)
		}
		paid := slices.ContainsFunc(made, func(t gateway.Transfer) bool { return t.ExternalRef == i.Reference && t.Amount == i.Amount })
		again := slices.ContainsFunc(all, func(o *intent.Intent) bool {
			return o.Reference == i.Reference && o.Amount == i.Amount && o.State == intent.Done && !o.Existing
		})
		if paid && !again && i.State != intent.Done || !paid && i.State == intent.Done {
			return fmt.Errorf("%s is %s, and paid is %t", i.ID, i.State, paid)
		}
	}
	return nil
}

// memory returns a folder in which a sync costs nothing, if the system has one.
func memory(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "intent") //nolint:usetesting // not in memory everywhere
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// explored is what an exploration did.
type explored struct{ runs, sends int }

// exploreAll runs sequences of steps, at most most of them, until one is wrong.
func exploreAll(t *testing.T, dialect mockserver.Dialect, refund bool, d defect, depth, most int) (did explored, found error) {
	t.Helper()
	folder := memory(t)
	var tree explore.Tree
	for {
		server := mockserver.Run(t, mockserver.WithDialect(dialect), mockserver.WithConsole(false), mockserver.WithOpeningBalance(1e9))
		for range 1000 {
			run := tree.Next()
			if run == nil || tree.Runs() > most {
				return did, nil
			}
			w := &world{
				t: t, run: run, server: server, key: fmt.Sprintf("sk_test_%d", tree.Runs()), defect: d, refund: refund,
				path:     filepath.Join(folder, fmt.Sprint("journal", tree.Runs())),
				accepted: map[string]bool{}, seen: map[string]bool{},
			}
			if refund {
				w.pay()
			}
			err := w.play(depth)
			did.runs++
			did.sends += w.sends
			_ = os.Remove(w.path)
			if err != nil {
				return did, fmt.Errorf("%w\n%s", err, strings.Join(w.trace, "\n"))
			}
		}
	}
}

// pay makes the transaction that is refunded.
func (w *world) pay() {
	tx, err := w.client().Transactions.Create(w.t.Context(), gateway.TransactionParams{
		Amount: 20000, Method: gateway.Pix,
		Buyer:    gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
		Products: []gateway.Product{{Name: "Mug", Price: 20000}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.server.Transactions.Pay(tx.ID); err != nil {
		w.t.Fatal(err)
	}
	w.transactionID = tx.ID
}

// TestNoAgentPaysTwice runs every sequence of steps of an agent, with every fault and both
// decisions of the person.
func TestNoAgentPaysTwice(t *testing.T) {
	t.Parallel()
	depth := 2
	if os.Getenv("FULL_SIZE") != "" {
		depth = 3
	}
	for _, c := range []struct {
		name    string
		dialect mockserver.Dialect
		refund  bool
	}{{"payouts", mockserver.Document, false}, {"payouts of a live gateway", mockserver.Live, false}, {"refunds", mockserver.Document, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			did, found := exploreAll(t, c.dialect, c.refund, defect{}, depth, 1<<30)
			t.Logf("%d sequences of %d steps, %d requests that move money", did.runs, depth, did.sends)
			if found != nil {
				t.Error(found)
			}
		})
	}
}

// TestTheExplorationFindsDefects seeds mistakes of other servers.
func TestTheExplorationFindsDefects(t *testing.T) {
	t.Parallel()
	fresh := func(w *world, body map[string]any) {
		reference, _ := body["external_ref"].(string)
		if w.seen[reference] {
			body["external_ref"] = fmt.Sprint(reference, len(w.trace))
		}
		w.seen[reference] = true
	}
	for _, d := range []defect{
		{name: "a new reference on a repeat", change: fresh},
		{name: "a lost response is retried as a new payment", change: fresh, resend: true},
		{name: "a lost refund is retried at once", refund: true, resend: true},
		{name: "the amount is edited after the approval", change: func(_ *world, body map[string]any) { body["amount"] = edited }},
		{name: "the round is dropped", dropRounds: true},
		{name: "a rejected repeat counts as the outcome", blind: true},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			did, found := exploreAll(t, mockserver.Document, d.refund, d, 2, 20000)
			if found == nil {
				t.Fatalf("%d sequences don't find the defect", did.runs)
			}
			t.Logf("found after %d sequences: %s", did.runs, strings.SplitN(found.Error(), "\n", 2)[0])
		})
	}
}
