package engine_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// These tests compare docs/states.md with the engine: they apply every trigger in
// every reachable state. The document must have a row for each change, and the
// engine a change for each row.

// edge is one transition, as in a row of the document.
type edge struct {
	from, trigger, to, webhooks string
}

func (e edge) String() string {
	return fmt.Sprintf("%s --%s--> %s, sending %s", e.from, e.trigger, e.to, e.webhooks)
}

const (
	nothing   = "–"
	unchanged = "unchanged"
)

// edges is a set of transitions.
type edges map[edge]bool

func (s edges) add(from, trigger, to string, webhooks []string) {
	list := nothing
	if len(webhooks) > 0 {
		list = strings.Join(webhooks, ", ")
	}
	s[edge{from, trigger, to, list}] = true
}

func eventKinds(c engine.Change, prefix string) []string {
	var list []string
	for _, e := range c.Events {
		if strings.HasPrefix(e.Kind, prefix) {
			list = append(list, e.Kind)
		}
	}
	return list
}

// section returns the lines of a section of docs/states.md.
func section(t *testing.T, title string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/states.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "\n## "+title+"\n")
	require.True(t, found, "docs/states.md has no section %q", title)
	body, _, _ := strings.Cut(after, "\n## ")
	return strings.Split(body, "\n")
}

// cells returns the rows of the section's tables that have the given number of
// columns, without the header rows.
func cells(t *testing.T, title string, columns int) [][]string {
	t.Helper()
	var rows [][]string
	head := true
	for _, line := range section(t, title) {
		if !strings.HasPrefix(line, "|") {
			head = true
			continue
		}
		row := strings.Split(strings.Trim(line, "|"), "|")
		for i := range row {
			row[i] = strings.ReplaceAll(strings.TrimSpace(row[i]), "`", "")
		}
		if !head && len(row) == columns && !strings.HasPrefix(row[0], "--") {
			rows = append(rows, row)
		}
		head = false
	}
	require.NotEmpty(t, rows, "section %q has no table of %d columns", title, columns)
	return rows
}

// documented returns the transitions of a section. "any other" stands for all
// states except those from which another row of the same trigger starts. skip lists
// the rows that other tests cover.
func documented(t *testing.T, title string, states []string, skip ...string) edges {
	t.Helper()
	rows := cells(t, title, 6)
	taken := map[string][]string{} // by trigger
	for _, row := range rows {
		taken[row[2]] = append(taken[row[2]], strings.Split(row[1], ", ")...)
	}
	set := edges{}
	for _, row := range rows {
		if slices.Contains(skip, row[0]) {
			continue
		}
		from := strings.Split(row[1], ", ")
		if row[1] == "any other" {
			from = slices.DeleteFunc(slices.Clone(states), func(s string) bool { return slices.Contains(taken[row[2]], s) })
		}
		for _, f := range from {
			for to := range strings.SplitSeq(row[4], ", ") {
				if to == "the same" {
					to = f
				}
				set[edge{f, row[2], to, row[5]}] = true
			}
		}
	}
	return set
}

func compare(t *testing.T, want, got edges) {
	t.Helper()
	for e := range got {
		assert.True(t, want[e], "docs/states.md has no row for %s", e)
	}
	for e := range want {
		assert.True(t, got[e], "docs/states.md has a row that the engine never takes: %s", e)
	}
}

// compareDiagram compares a diagram of the section, by its number, with the state changes
// in got.
func compareDiagram(t *testing.T, title string, number int, got edges) {
	t.Helper()
	drawn, taken := map[string]bool{}, map[string]bool{}
	arrow := regexp.MustCompile(`^ +(\S+) --> (\S+?)(?:: .+)?$`)
	diagrams := 0
	for _, line := range section(t, title) {
		if line == "```mermaid" {
			diagrams++
		}
		if m := arrow.FindStringSubmatch(line); m != nil && diagrams == number {
			drawn[m[1]+" "+m[2]] = true
		}
	}
	for e := range got {
		loop := e.from == e.to && (e.webhooks == "subscription.updated" || e.webhooks == "subscription.trial_will_end" || e.from == "incomplete")
		if e.to != unchanged && !loop {
			taken[strings.Replace(e.from, nothing, "[*]", 1)+" "+e.to] = true
		}
	}
	assert.Equal(t, taken, drawn, "the diagram of %s", title)
}

func TestStatesDocumentHasEveryTransitionOfATransaction(t *testing.T) {
	t.Parallel()
	states := []string{
		"pending", "paid", "captured", "expired", "canceled", "refused", "refunded", "partially_refunded", "chargedback",
	}
	got := edges{}
	for _, method := range []string{"pix", "voucher", "credit_card"} {
		for _, status := range states {
			walkTransaction(got, paymentEnv(), inState(t, paymentEnv(), method, status))
		}
	}
	for _, c := range []struct{ trigger, method, token string }{
		{"create by Pix", "pix", ""},
		{"create by voucher", "voucher", ""},
		{"create by card", "credit_card", "pgct_ok"},
		{"create by card, 3-D Secure token", "credit_card", "pgct_3ds"},
		{"create by card, refused token", "credit_card", "pgct_refused"},
		{"create by card, immediate token", "credit_card", "pgct_paid"},
		{"create by card, immediate token", "credit_card", "pgct_captured"},
	} {
		tx, change := create(t, paymentEnv(), payment(c.method, c.token))
		got.add(nothing, c.trigger, tx.Status, eventKinds(change, ""))
		walkTransaction(got, paymentEnv(), tx)
	}
	// X7, X17, X19, X20, X25 and X26 have their own tests.
	compareDiagram(t, "Transactions", 1, got)
	disputes := edges{}
	for _, status := range []string{"paid", "partially_refunded"} {
		walkDispute(disputes, inState(t, liveEnv(), "pix", status), 4)
	}
	compareDiagram(t, "Transactions", 2, disputes)
	maps.Copy(got, disputes)
	compare(t, documented(t, "Transactions", states, "X7", "X17", "X19", "X20", "X25", "X26"), got)
}

// walkDispute applies every trigger of a dispute, up to a depth.
func walkDispute(got edges, tx *engine.Transaction, depth int) {
	if depth == 0 {
		return
	}
	for trigger, do := range map[string]transition{
		"payer disputes": engine.OpenDispute, "merchant contests": engine.ContestDispute,
		"dispute is lost": engine.LoseDispute, "dispute is won": engine.WinDispute, "chargeback": engine.Chargeback,
	} {
		if c, refusal := do(liveEnv(), tx); refusal == nil {
			got.add(tx.Status, trigger, c.Transactions[0].Status, eventKinds(c, ""))
			walkDispute(got, c.Transactions[0], depth-1)
		}
	}
}

// walkTransaction applies every trigger to a transaction.
func walkTransaction(got edges, env engine.Env, tx *engine.Transaction) {
	late := env
	late.Now = env.Now.Add(4 * 24 * time.Hour)
	type trigger struct {
		name string
		env  engine.Env
		do   transition
	}
	triggers := []trigger{
		{"payer pays", env, engine.Pay},
		{"issuer refuses", env, engine.Refuse},
		{"canceled by control", env, engine.Cancel},
		{"challenge passed", env, engine.PassChallenge},
		{"challenge failed", env, engine.FailChallenge},
		{"refund of the rest", env, refund(0)},
		{"refund of a part", env, refund(1)},
		{"chargeback", env, engine.Chargeback},
		{"payer disputes", env, engine.OpenDispute},
		{"merchant contests", env, engine.ContestDispute},
		{"dispute is lost", env, engine.LoseDispute},
		{"dispute is won", env, engine.WinDispute},
	}
	if tx.NextAction != nil {
		triggers = append(triggers, trigger{"challenge expires", late, engine.ExpireByTimer})
	} else {
		triggers = append(triggers, trigger{"time runs out", late, engine.ExpireByTimer})
	}
	for _, trigger := range triggers {
		c, refusal := trigger.do(trigger.env, tx)
		switch {
		case refusal == nil:
			got.add(tx.Status, trigger.name, c.Transactions[0].Status, eventKinds(c, ""))
		case trigger.name == "refund of the rest": // the document lists the rejections of API calls
			got.add(tx.Status, trigger.name, unchanged, nil)
		}
	}
}

func TestStatesDocumentHasTheWebhookOfEverySandboxStatus(t *testing.T) {
	t.Parallel()
	for _, row := range cells(t, "Transactions", 2) {
		for status := range strings.SplitSeq(row[0], ", ") {
			from := "pending"
			if status == from {
				from = "paid"
			}
			env := liveEnv()
			tx := inState(t, env, "credit_card", from)
			c, refusal := engine.SetStatus(env, tx, status)
			require.Nil(t, refusal)
			want := strings.ReplaceAll(row[1], nothing, "")
			assert.Equal(t, want, strings.Join(eventKinds(c, ""), ", "), "PUT status %s", status)
		}
	}
}

func TestStatesDocumentHasEveryTransitionOfATransfer(t *testing.T) {
	t.Parallel()
	moves := map[string]transferMove{
		"risk check": engine.AnalyseTransfer, "bank accepts": engine.ProcessTransfer, "bank settles": engine.SettleTransfer,
		"bank refuses": engine.FailTransfer, "cancel": engine.CancelTransfer,
	}
	w := newWorld(t)
	c, refusal := engine.CreateTransfer(w.env, nil, engine.Transfer{Amount: 1200, PixKey: "ana@example.com", PixKeyType: "EMAIL"})
	require.Nil(t, refusal)
	got := edges{}
	got.add(nothing, "create", c.Transfers[0].Status, eventKinds(c, ""))
	seen := map[string]bool{}
	for queue := c.Transfers; len(queue) > 0; queue = queue[1:] {
		transfer := queue[0]
		if seen[transfer.Status] {
			continue
		}
		seen[transfer.Status] = true
		for trigger, move := range moves {
			c, refusal := move(w.env, transfer)
			switch {
			case refusal == nil:
				got.add(transfer.Status, trigger, c.Transfers[0].Status, eventKinds(c, ""))
				queue = append(queue, c.Transfers[0])
			case trigger == "cancel":
				got.add(transfer.Status, trigger, unchanged, nil)
			}
		}
	}
	states := []string{"pending", "in_analysis", "processing", "paid", "error", "cancelled"}
	require.Len(t, seen, len(states), "every state is reached")
	compare(t, documented(t, "Transfers", states, "P2"), got)
	compareDiagram(t, "Transfers", 1, got)
}

// subscriptionStart is one way to create a subscription.
type subscriptionStart struct {
	trigger, token string
	edit           []func(*engine.NewSubscription)
}

func TestStatesDocumentHasEveryTransitionOfASubscription(t *testing.T) {
	t.Parallel()
	got := edges{}
	for _, start := range []subscriptionStart{
		{"create by card: charge succeeds", "pgct_ok", nil},
		{"create by card: charge succeeds", "pgct_renewal_fails", nil},
		{"create by card: charge succeeds", "pgct_renewal_fails_2", nil},
		{"create by card: charge succeeds", "pgct_renewal_fails", edits(immediateCancel)},
		{"create by card: charge fails", "pgct_refused", nil},
		{"create by card: 3-D Secure", "pgct_3ds", nil},
		{"create by card: 3-D Secure", "pgct_3ds", edits(inTrial(10))},
		{"create by card with a trial: charge succeeds", "pgct_ok", edits(inTrial(10))},
		{"create by card with a trial: charge succeeds", "pgct_renewal_fails", edits(inTrial(10))},
		{"create by card with a trial: charge succeeds", "pgct_always_fails", edits(inTrial(10))},
		{"create by card with a trial: charge succeeds", "pgct_always_fails", edits(inTrial(10), immediateCancel)},
		{"create by Pix Automatico", "", edits(byPix)},
		{"create by Pix Automatico", "", edits(byPix, inTrial(10))},
	} {
		walkSubscriptions(t, got, start, nil, 5)
	}
	compare(t, documented(t, "Subscriptions", nil, "S22"), got)
	compareDiagram(t, "Subscriptions", 1, got)
}

// walkSubscriptions creates a subscription, applies a path of triggers, and
// continues with every trigger that changes it, up to a depth.
func walkSubscriptions(t *testing.T, got edges, start subscriptionStart, path []string, depth int) {
	t.Helper()
	for _, trigger := range subscriptionTriggers() {
		w := newWorld(t)
		id := w.subscribe(start.token, start.edit...)
		if len(path) == 0 {
			got.add(nothing, start.trigger, w.sub(id).Status, subscriptionKinds(w))
		}
		w.emitted()
		for _, step := range path {
			takeTrigger(w, id, step)
		}
		w.emitted()
		before := w.sub(id)
		name, rejected := takeTrigger(w, id, trigger)
		kinds := subscriptionKinds(w)
		switch after := w.sub(id); {
		case rejected && trigger == "cancel":
			got.add(before.Status, trigger, unchanged, nil)
		case rejected:
		case trigger == "next charge fails":
			if depth > 1 && !slices.Contains(path, trigger) {
				walkSubscriptions(t, got, start, append(slices.Clone(path), trigger), depth-1)
			}
		case after.Status == before.Status && len(kinds) == 0:
		default:
			got.add(before.Status, name, after.Status, kinds)
			if depth > 1 && trigger != "update" {
				walkSubscriptions(t, got, start, append(slices.Clone(path), trigger), depth-1)
			}
		}
	}
}

func subscriptionKinds(w *world) []string {
	return slices.DeleteFunc(w.emitted(), func(kind string) bool { return !strings.HasPrefix(kind, "subscription.") })
}

func subscriptionTriggers() []string {
	return []string{
		"next timer", "cancel", "update", "payer authorizes", "payer rejects", "payer revokes", "next charge fails",
		"challenge passed", "challenge failed", "chargeback",
	}
}

// walkCheckout applies a path of triggers to a new session and continues with
// each trigger that changes the session or its link, up to a depth.
func walkCheckout(t *testing.T, sessions, links edges, path []string, depth int) {
	t.Helper()
	triggers := []string{
		"fill in", "clear", "payment starts", "paid", "refused", "canceled", "expired", "session expires", "link expires",
		"deactivated by control",
	}
	for _, trigger := range triggers {
		w := newWorld(t)
		in := amountLink(4990)
		in.MaxUses = 1
		slug := w.link(in)
		id := w.visit(slug, "")
		for _, step := range path {
			takeCheckoutTrigger(w, slug, id, step)
		}
		link, session := w.links.rows[slug].Status, w.sessions.rows[id]
		name := takeCheckoutTrigger(w, slug, id, trigger)
		nextLink, next := w.links.rows[slug].Status, w.sessions.rows[id]
		if nextLink != link {
			ofLink, ofSession := name, "link ends"
			if name == "paid" {
				ofLink, ofSession = "session completes", name
			}
			links.add(link, ofLink, nextLink, nil)
			name = ofSession
		}
		if next != session {
			sessions.add(session.Status, name, next.Status, nil)
			if depth > 1 {
				walkCheckout(t, sessions, links, append(slices.Clone(path), trigger), depth-1)
			}
		}
	}
}

// takeCheckoutTrigger applies a trigger and returns its name in the document.
func takeCheckoutTrigger(w *world, slug, id, trigger string) string {
	w.tb.Helper()
	link, session := w.links.rows[slug], w.sessions.rows[id]
	switch trigger {
	case "fill in":
		_ = w.fill(id, engine.SessionUpdate{Buyer: ana, Method: "credit_card"})
		return "update"
	case "clear":
		_ = w.fill(id, engine.SessionUpdate{Buyer: func(b *engine.Buyer) { b.Name = "" }})
		return "update"
	case "payment starts":
		_ = w.begin(id)
	case "session expires":
		w.env.Now = session.ExpiresAt
		w.apply(engine.ExpireSession(w.env, session))
	case "link expires":
		c, _ := engine.ExpireLink(w.env, link, w.sessionsOf(link))
		w.apply(c)
	case "deactivated by control":
		c, _ := engine.DeactivateLink(w.env, link, w.sessionsOf(link))
		w.apply(c)
	default:
		if w.transactions.rows[session.TransactionID] == nil {
			return trigger
		}
		_ = w.move(session.TransactionID, setStatus(trigger))
		if trigger != "paid" {
			return "payment fails"
		}
	}
	return trigger
}

func TestStatesDocumentHasEveryTransitionOfCheckoutLinksAndSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.visit(w.link(amountLink(4990)), "")
	sessions, links := edges{}, edges{}
	sessions.add(nothing, "read by slug", w.sessions.rows[id].Status, nil)
	walkCheckout(t, sessions, links, nil, 5)
	want := map[byte]edges{'L': {}, 'C': {}}
	for _, row := range cells(t, "Checkout links and sessions", 5) {
		for from := range strings.SplitSeq(row[1], ", ") {
			want[row[0][0]].add(from, row[2], row[4], nil)
		}
	}
	compare(t, want['L'], links)
	compare(t, want['C'], sessions)
}

// takeTrigger applies a trigger and returns its name in the document, and whether
// it was rejected.
func takeTrigger(w *world, id, trigger string) (name string, rejected bool) {
	w.tb.Helper()
	charges := len(w.sub(id).ChargeIDs)
	name = trigger
	var refusal *engine.Refusal
	switch trigger {
	case "next timer":
		if len(w.timers) == 0 {
			return name, true
		}
		timer := w.timers[0]
		w.advance(timer.At.Sub(w.env.Now))
		name = map[engine.TimerKind]string{
			engine.TimerTrialWillEnd: "trial is about to end", engine.TimerPeriodEnd: "period ends", engine.TimerRetry: "retry",
			engine.TimerExpireAuthorization: "authorization expires", engine.TimerExpireChallenge: "challenge expires",
		}[timer.Kind]
	case "cancel":
		refusal = w.take(id, does(subCancel))
	case "update":
		refusal = w.take(id, does(subUpdate))
	case "payer authorizes":
		refusal = w.take(id, does(subAuthorize))
	case "payer rejects":
		refusal = w.take(id, does(subReject))
	case "payer revokes":
		refusal = w.take(id, does(subRevoke))
	case "next charge fails":
		refusal = w.take(id, does(failNext(1)))
	default:
		refusal = engine.NotFound("charge")
		for _, charge := range w.sub(id).ChargeIDs {
			refusal = w.move(charge, map[string]transition{
				"challenge passed": engine.PassChallenge, "challenge failed": engine.FailChallenge, "chargeback": engine.Chargeback,
			}[trigger])
			if refusal == nil {
				break
			}
		}
	}
	if s := w.sub(id); len(s.ChargeIDs) > charges {
		name += ": charge " + map[bool]string{true: "succeeds", false: "fails"}[s.Latest.Status == "paid"]
	}
	return name, refusal != nil
}

func TestStatesDocumentHasEveryLegacyState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.legacyPayment()
	for _, row := range cells(t, "Legacy Pix payments", 2) {
		for status := range strings.SplitSeq(row[0], ", ") {
			tx := *w.transactions.rows[id]
			tx.Status = status
			assert.Equal(t, row[1], tx.LegacyStatus(), status)
		}
	}
}

// Comments and test names cite the rows: each citation must be a row of the
// document, and each row of a resource must be cited by a test.
func TestEveryRowOfTheStatesDocumentIsCitedByATest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/states.md")
	require.NoError(t, err)
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([XPSLC]\d+b?) \|`).FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = false
	}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	inCode := regexp.MustCompile(`\b[XPSLC]\d+b?\b`)
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || name == "states_test.go" {
			continue
		}
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, row := range inCode.FindAllString(string(source), -1) {
			_, found := rows[row]
			assert.True(t, found, "%s cites row %s, which docs/states.md does not have", name, row)
			if found && strings.HasSuffix(name, "_test.go") {
				rows[row] = true
			}
		}
	}
	for row, cited := range rows {
		if strings.ContainsAny(row[:1], "LC") {
			continue // walkCheckout covers them
		}
		assert.True(t, cited, "no test of the engine names row %s of docs/states.md", row)
	}
}
