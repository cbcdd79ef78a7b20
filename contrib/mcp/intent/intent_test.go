package intent_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gateway-go/gateway/contrib/mcp/intent"
)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func limits(t *testing.T, texts ...string) intent.Limits {
	t.Helper()
	l := intent.Limits{}
	for _, text := range texts {
		if err := l.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func open(t *testing.T, path string, c *clock) *intent.Journal {
	t.Helper()
	j, err := intent.Open(path, intent.Config{
		Account: "shop", Limits: limits(t, "payout=50000/day,30000/each", "refund=50000/day"), ClientBelow: 1000, Now: c.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func start(t *testing.T) (*intent.Journal, string, *clock) {
	t.Helper()
	c := &clock{time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)}
	path := filepath.Join(t.TempDir(), "journal")
	return open(t, path, c), path, c
}

func payout(purpose string, amount int64) intent.Proposal {
	return intent.Proposal{
		Kind: intent.Payout, Principal: "ana", For: purpose, Payee: "EMAIL a@example.com", Amount: amount, Currency: "BRL",
		Params: json.RawMessage(`{"pix_key":"a@example.com"}`),
	}
}

func prepare(t *testing.T, j *intent.Journal, p intent.Proposal) *intent.Intent {
	t.Helper()
	i, _, err := j.Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func approve(t *testing.T, j *intent.Journal, i *intent.Intent) *intent.Intent {
	t.Helper()
	i, err := j.Decide("ana", i.ID, i.Round, true, intent.ViaTerminal)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func wantErr(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: the error is %v, want %v", what, err, target)
	}
}

func TestTheSamePurposeIsOneIntent(t *testing.T) {
	t.Parallel()
	j, _, _ := start(t)
	first := prepare(t, j, payout("Invoice #17", 500))
	again, existing, err := j.Prepare(payout("invoice-17", 500))
	if err != nil || !existing || again.ID != first.ID {
		t.Errorf("prepared again: %v, existing %t, %v", again, existing, err)
	}
	_, _, err = j.Prepare(payout("invoice 17", 600))
	reused, ok := errors.AsType[*intent.ReusedError](err)
	if !ok || reused.Existing.ID != first.ID {
		t.Errorf("another amount: %v", err)
	}
	other := payout("invoice 17", 500)
	other.Principal = "bob"
	_, _, err = j.Prepare(other)
	wantErr(t, "another principal", err, intent.ErrKeyReused)
	if all, err := j.List(""); err != nil || len(all) != 1 {
		t.Errorf("the journal has %d intents (%v), want 1", len(all), err)
	}
	if _, err := j.Get("bob", first.ID); !errors.Is(err, intent.ErrNotFound) {
		t.Errorf("another principal reads the intent: %v", err)
	}
	similar := prepare(t, j, payout("invoice-17-retry", 500))
	if len(similar.Similar) != 1 || similar.Similar[0] != first.ID {
		t.Errorf("similar is %v, want %s", similar.Similar, first.ID)
	}
	_, err = j.Decide("ana", similar.ID, 0, true, intent.ViaClient)
	wantErr(t, "a similar intent approved through the client", err, intent.ErrTerminal)
	_, err = j.Decide("ana", first.ID, 0, true, intent.ViaClient)
	wantErr(t, "the one that was prepared first, through the client", err, intent.ErrTerminal)
	if _, err := j.Cancel("ana", similar.ID); err != nil {
		t.Fatal(err)
	}
	_, err = j.Decide("ana", first.ID, 0, true, intent.ViaClient)
	wantErr(t, "an approval through the client below the amount", err, nil)
}

func TestAReferenceIsAPureFunction(t *testing.T) {
	t.Parallel()
	a, _, _ := start(t)
	b, _, _ := start(t)
	first, second := prepare(t, a, payout("Invoice 17", 500)), prepare(t, b, payout("INVOICE  17", 500))
	if first.Reference != second.Reference || len(first.Reference) != len("mcp-")+24 {
		t.Errorf("two journals have the references %s and %s", first.Reference, second.Reference)
	}
	if other := prepare(t, a, payout("Invoice 18", 500)); other.Reference == first.Reference {
		t.Error("two purposes have the same reference")
	}
}

func TestAnAnswerCountsOnce(t *testing.T) {
	t.Parallel()
	j, _, c := start(t)
	i := prepare(t, j, payout("invoice 17", 500))
	sealer, err := intent.NewSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	state := sealer.Seal(i, c.now)
	if round, err := sealer.Open(state, i, c.now); err != nil || round != 0 {
		t.Fatalf("the sealed state opens as round %d, %v", round, err)
	}
	edited := *i
	edited.Amount++
	_, err = sealer.Open(state, &edited, c.now)
	wantErr(t, "another amount", err, intent.ErrApproval)
	_, err = sealer.Open(strings.Replace(state, ".0.", ".1.", 1), i, c.now)
	wantErr(t, "another round", err, intent.ErrApproval)
	_, err = sealer.Open(state, i, c.now.Add(intent.QuestionLifetime+time.Second))
	wantErr(t, "an old question", err, intent.ErrApproval)

	lost, _, _ := start(t)
	_, err = sealer.Open(state, prepare(t, lost, payout("invoice 17", 500)), c.now)
	wantErr(t, "a question of a journal that was lost", err, intent.ErrApproval)

	if _, err := j.Decide("ana", i.ID, 0, false, intent.ViaClient); err != nil {
		t.Fatal(err)
	}
	_, err = j.Decide("ana", i.ID, 0, true, intent.ViaClient)
	wantErr(t, "a declined question decided again", err, intent.ErrApproval)
	_, err = j.Begin("ana", i.ID, nil, 0)
	wantErr(t, "begin", err, intent.ErrNotApproved)
}

func TestStatesOfAPayout(t *testing.T) {
	t.Parallel()
	j, _, c := start(t)
	i := approve(t, j, prepare(t, j, payout("invoice 17", 500)))
	begin := func() *intent.Intent {
		got, err := j.Begin("ana", i.ID, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	finish := func(o intent.Outcome, want intent.State) {
		t.Helper()
		if got, err := j.Finish("ana", i.ID, o); err != nil || got.State != want {
			t.Errorf("%s leads to %v, %v, want %s", o.State, got, err, want)
		}
	}
	begin()
	finish(intent.Outcome{State: intent.Prepared, Problem: "ErrNotSent"}, intent.Prepared)
	begin()
	finish(intent.Outcome{State: intent.Unknown}, intent.Unknown)
	first := c.now
	c.now = c.now.Add(25 * time.Hour) // an unknown intent does not expire
	if again := begin(); !again.Repeat() || !again.FirstSent.Equal(first) {
		t.Errorf("the repeat is based on %s, want %s", again.FirstSent, first)
	}
	finish(intent.Outcome{State: intent.Refused}, intent.Unknown) // the first request may have caused it
	_, err := j.Cancel("ana", i.ID)
	wantErr(t, "cancel", err, intent.ErrState)
	begin()
	finish(intent.Outcome{State: intent.Done, ResourceID: "tr_1"}, intent.Done)
	finish(intent.Outcome{State: intent.Unknown}, intent.Done)
	_, err = j.Begin("ana", i.ID, nil, 0)
	wantErr(t, "begin after done", err, intent.ErrState)

	if _, err := j.Void("ana", i.ID, "error"); err != nil {
		t.Fatal(err)
	}
	next := prepare(t, j, payout("invoice 17", 700))
	if next.Attempt != 2 || next.Reference == i.Reference {
		t.Errorf("after a transfer that failed: attempt %d, reference %s", next.Attempt, next.Reference)
	}
	c.now = c.now.Add(intent.Lifetime)
	_, err = j.Decide("ana", next.ID, 0, true, intent.ViaTerminal)
	wantErr(t, "approve an expired intent", err, intent.ErrState)
	if again := prepare(t, j, payout("invoice 17", 700)); again.ID == next.ID || again.Reference != next.Reference {
		t.Errorf("after an expired intent: %s with %s, want the reference %s", again.ID, again.Reference, next.Reference)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	j, _, c := start(t)
	begin := func(purpose string, amount int64) error {
		i := approve(t, j, prepare(t, j, payout(purpose, amount)))
		_, err := j.Begin("ana", i.ID, nil, 0)
		return err
	}
	wantErr(t, "more than each", begin("a", 30001), intent.ErrLimit)
	wantErr(t, "each", begin("b", 30000), nil)
	wantErr(t, "more than the day", begin("c", 20001), intent.ErrLimit)
	wantErr(t, "the day", begin("d", 20000), nil)
	wantErr(t, "one more", begin("e", 1), intent.ErrLimit)
	c.now = c.now.Add(24 * time.Hour)
	wantErr(t, "the next day", begin("f", 30000), nil)
	euros := payout("g", 1)
	euros.Currency = "EUR"
	i := approve(t, j, prepare(t, j, euros))
	_, err := j.Begin("ana", i.ID, nil, 0)
	wantErr(t, "a currency without a limit", err, intent.ErrLimit)
	for _, bad := range []string{"", "payout", "payout=", "cards=1/day", "payout=-1/day", "payout=1/week", "payout:=1/day"} {
		if err := (intent.Limits{}).Set(bad); err == nil {
			t.Errorf("the limit %q is accepted", bad)
		}
	}
}

// The limit is of any 24 hours, so midnight resets nothing, and neither does a clock that
// is set back.
func TestALimitAroundMidnightAndAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	j, _, c := start(t)
	c.now = time.Date(2026, 3, 1, 23, 59, 59, 0, time.UTC)
	spend := func(purpose string) error {
		i := approve(t, j, prepare(t, j, payout(purpose, 26000)))
		_, err := j.Begin("ana", i.ID, nil, 0)
		return err
	}
	wantErr(t, "the first", spend("a"), nil)
	for _, later := range []time.Duration{time.Second, 12 * time.Hour, 24*time.Hour - time.Second, -time.Hour, -48 * time.Hour} {
		at := c.now
		c.now = c.now.Add(later)
		wantErr(t, "after "+later.String(), spend("at "+later.String()), intent.ErrLimit)
		c.now = at
	}
	c.now = c.now.Add(24 * time.Hour)
	wantErr(t, "a day later", spend("b"), nil)
}

func TestARefundIsSentAgainOnlyAfterThreeReads(t *testing.T) {
	t.Parallel()
	j, _, c := start(t)
	propose := func(purpose string) *intent.Intent {
		return approve(t, j, prepare(t, j, intent.Proposal{Kind: intent.Refund, Principal: "ana", For: purpose, Payee: "tx_1", Amount: 500, Currency: "BRL"}))
	}
	i, other := propose("return 1"), propose("return 2")
	n, err := j.Entries()
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Begin("ana", i.ID, &intent.Before{Refund: 501}, n)
	wantErr(t, "more than approved", err, intent.ErrState)
	if _, err := j.Begin("ana", i.ID, &intent.Before{Refunded: 100, Refund: 400}, n); err != nil {
		t.Fatal(err)
	}
	_, err = j.Begin("ana", other.ID, &intent.Before{Refund: 500}, n)
	wantErr(t, "another refund of the transaction", err, intent.ErrBusy)
	_, err = j.Begin("ana", i.ID, &intent.Before{Refund: 500}, n)
	wantErr(t, "again", err, intent.ErrWait)
	_, err = j.Miss("ana", i.ID)
	wantErr(t, "a read that is too early", err, intent.ErrWait)
	c.now = c.now.Add(2 * time.Minute)
	for read := range intent.Reads {
		got, err := j.Miss("ana", i.ID)
		if err != nil || (got.State == intent.Prepared) != (read == intent.Reads-1) {
			t.Fatalf("read %d: %v, %v", read, got, err)
		}
		c.now = c.now.Add(30 * time.Second)
	}
	_, err = j.Begin("ana", other.ID, &intent.Before{Refund: 500}, n)
	wantErr(t, "a transaction that was read before", err, intent.ErrBusy)
	if n, err = j.Entries(); err != nil {
		t.Fatal(err)
	}
	_, err = j.Begin("ana", other.ID, &intent.Before{Refund: 500}, n)
	wantErr(t, "the other refund, then", err, nil)
}

func TestTheJournalSurvives(t *testing.T) {
	t.Parallel()
	j, path, c := start(t)
	i := approve(t, j, prepare(t, j, payout("invoice 17", 500)))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a torn line is dropped", func(t *testing.T) {
		t.Parallel()
		for cut := 1; cut < 300; cut += 7 {
			torn := filepath.Join(t.TempDir(), "journal")
			if err := os.WriteFile(torn, whole[:len(whole)-cut], 0o600); err != nil {
				t.Fatal(err)
			}
			j := open(t, torn, &clock{c.now})
			got, err := j.Get("ana", i.ID)
			if err != nil || got.Approved {
				t.Fatalf("cut by %d: %v, %v", cut, got, err)
			}
			approve(t, j, got)
			if got, err := open(t, torn, &clock{c.now}).Get("ana", i.ID); err != nil || !got.Approved {
				t.Fatalf("cut by %d, appended and read again: %v, %v", cut, got, err)
			}
		}
	})
	for name, damage := range map[string]func(b []byte) []byte{
		"a changed amount":  func(b []byte) []byte { return []byte(strings.Replace(string(b), "500", "900", 1)) },
		"a removed line":    func(b []byte) []byte { return b[strings.Index(string(b), "\n")+1:] },
		"a line of garbage": func(b []byte) []byte { return append(b, "{}\n"...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			damaged := filepath.Join(t.TempDir(), "journal")
			if err := os.WriteFile(damaged, damage(append([]byte{}, whole...)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := intent.Open(damaged, intent.Config{Account: "shop"})
			wantErr(t, "open", err, intent.ErrCorrupt)
		})
	}
	readable := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(readable, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := intent.Open(readable, intent.Config{}); err == nil || !strings.Contains(err.Error(), "0600") {
		t.Errorf("a journal that others can read: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = j.Begin("ana", i.ID, nil, 0)
	wantErr(t, "a removed journal", err, intent.ErrCorrupt)
}

// TestTwoProcessesShareAJournal prepares the same purposes from two journals at once, as
// two windows of an editor would.
func TestTwoProcessesShareAJournal(t *testing.T) {
	t.Parallel()
	a, path, c := start(t)
	b := open(t, path, &clock{c.now})
	var ids [2][]string
	var all sync.WaitGroup
	for n, j := range []*intent.Journal{a, b} {
		all.Go(func() {
			for _, purpose := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				i, _, err := j.Prepare(payout(purpose, 500))
				if err != nil {
					t.Error(err)
					return
				}
				ids[n] = append(ids[n], i.ID)
			}
		})
	}
	all.Wait()
	if strings.Join(ids[0], " ") != strings.Join(ids[1], " ") {
		t.Errorf("two processes prepared %v and %v", ids[0], ids[1])
	}
}
