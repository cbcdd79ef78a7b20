package money_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gateway-go/gateway/contrib/mcp/intent"
	"github.com/gateway-go/gateway/contrib/mcp/money"
	"github.com/gateway-go/gateway/mockserver"
)

// An agent prepares one payment under two purposes, and lets a person decide on the second
// first: the question of the first must not hide it.
func TestThePaymentThatWasPreparedFirstIsSimilarToo(t *testing.T) {
	t.Parallel()
	h := connect(t, yes, "", everything...)
	first, _, _ := h.call("prepare_payout", invoice(5000))
	again := invoice(5000)
	again["for"] = "invoice 17, second try"
	second, _, _ := h.call("prepare_payout", again)
	if !slices.Equal(second.Similar, []string{first.Intent}) {
		t.Fatalf("the second is %+v", second)
	}
	if _, err := h.journal.Decide("", second.Intent, 0, true, intent.ViaTerminal); err != nil {
		t.Fatal(err)
	}
	if r, raw, _ := h.call("commit_intent", map[string]any{"intent": second.Intent}); r.State != "done" {
		t.Fatalf("the second, which a person approved: %s", raw)
	}
	for _, tool := range []string{"get_intent", "commit_intent"} {
		r, raw, _ := h.call(tool, map[string]any{"intent": first.Intent})
		if !slices.Equal(r.Similar, []string{second.Intent}) || r.State != "prepared" {
			t.Errorf("%s: %s", tool, raw)
		}
	}
	if prepared, raw, _ := h.call("prepare_payout", invoice(5000)); !strings.Contains(prepared.DoNext, "gateway-mcp approve") {
		t.Errorf("prepared again: %s", raw)
	}
	if h.paid() != 1 || len(h.asked) != 0 {
		t.Errorf("%d are paid, and the client asked %q", h.paid(), h.asked)
	}
}

// A question that was open before the other one was prepared doesn't count either.
func TestAnOpenQuestionEndsWithASimilarPayment(t *testing.T) {
	t.Parallel()
	var h *host
	h = connect(t, func(text string) *mcp.ElicitResult {
		again := invoice(5000)
		again["for"] = "invoice 18"
		if _, _, failed := h.call("prepare_payout", again); failed {
			t.Error("the other payment is not prepared")
		}
		return yes(text)
	}, "2026-07-28", everything...)
	first, _, _ := h.call("prepare_payout", invoice(5000))
	if r, raw, _ := h.call("commit_intent", map[string]any{"intent": first.Intent}); r.State != "prepared" || r.Sentinel != "not_approved" || h.paid() != 0 {
		t.Errorf("%s, %d are paid", raw, h.paid())
	}
}

// The question shows the payee that is paid: whole, and with what can't be seen.
func TestAQuestionShowsTheExactPayee(t *testing.T) {
	t.Parallel()
	for payee, want := range map[string]string{
		"EMAIL ana@example.com":                      "EMAIL ana@example.com",
		"EMAIL ana@example.com\u200b":                `"EMAIL ana@example.com\u200b"`,
		"EMAIL \u202emoc@example.com":                `"EMAIL \u202emoc@example.com"`,
		"João da Conceição (joao@example.com)":       "João da Conceição (joao@example.com)",
		"EMAIL ana@ex\u0430mple.com":                 `"EMAIL ana@ex\u0430mple.com"`, // a Cyrillic a
		"EMAIL " + strings.Repeat("a", 200) + "@x.y": "EMAIL " + strings.Repeat("a", 200) + "@x.y",
	} {
		i := &intent.Intent{Proposal: intent.Proposal{Kind: intent.Payout, For: "invoice 17", Payee: payee, Amount: 5000, Currency: "BRL"}}
		if got := money.Question(i); got != "Pay BRL 50.00 to the Pix key "+want+` for "invoice 17"?` {
			t.Errorf("%q: %s", payee, got)
		}
	}
	long := &intent.Intent{Proposal: intent.Proposal{Kind: intent.Payout, For: strings.Repeat("x", 61), Payee: "CPF 1", Amount: 5000, Currency: "BRL"}}
	if got := money.Question(long); !strings.HasSuffix(got, strings.Repeat("x", 60)+`…"?`) {
		t.Errorf("a purpose that is cut: %s", got)
	}
}

// An older copy of the journal can't be told from the newest one. The gateway's references
// and the targets of refunds still keep a payment from being made twice.
func TestAJournalThatIsRolledBack(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		for _, refund := range []bool{false, true} {
			server := mockserver.Run(t, mockserver.WithDialect(dialect), mockserver.WithOpeningBalance(1e9))
			w := &world{
				t: t, server: server, key: server.Key(), path: filepath.Join(t.TempDir(), "journal"), refund: refund,
				accepted: map[string]bool{}, seen: map[string]bool{}, sends: 2,
			}
			if refund {
				w.pay()
			}
			w.start()
			w.prepare("invoice 17", amount)
			id := w.intents[0]
			_, _, text, state := w.planes[0].Commit(t.Context(), id, true, "", false, false)
			w.accept(text)
			older, err := os.ReadFile(w.path)
			if err != nil {
				t.Fatal(err)
			}
			if r, _, _, _ := w.planes[0].Commit(t.Context(), id, true, state, true, true); r.State != "done" {
				t.Fatalf("paid: %+v", r)
			}
			// A running process notices it, and sends nothing.
			if err := os.WriteFile(w.path, older, 0o600); err != nil {
				t.Fatal(err)
			}
			if r, _, _, _ := w.planes[0].Commit(t.Context(), id, true, state, true, true); !r.Failed() || r.Sentinel != "internal" {
				t.Errorf("a process that has read more: %+v", r)
			}
			// The next process does not. The approval in flight counts once more.
			w.start()
			r, _, _, _ := w.planes[0].Commit(t.Context(), id, true, state, true, true)
			if r.State != "done" || r.Sentinel != "ErrDuplicate" {
				t.Errorf("dialect %v, refund %t: %+v", dialect, refund, r)
			}
			if err := w.check(); err != nil {
				t.Errorf("dialect %v, refund %t: %v", dialect, refund, err)
			}
			for _, j := range w.open {
				_ = j.Close()
			}
		}
	}
}

// A model that guesses ids finds nothing, and learns nothing from the errors.
func TestGuessedIntents(t *testing.T) {
	t.Parallel()
	h := connect(t, yes, "", everything...)
	prepared, _, _ := h.call("prepare_payout", invoice(5000))
	var answers []string
	for _, id := range []string{
		"", "int_", "int_00000000000000000000", strings.ToUpper(prepared.Intent), prepared.Intent[:len(prepared.Intent)-1], prepared.Intent + "0", " " + prepared.Intent, "../" + prepared.Intent,
	} {
		for _, tool := range []string{"get_intent", "commit_intent", "cancel_intent"} {
			r, raw, failed := h.call(tool, map[string]any{"intent": id})
			if !failed || r.Sentinel != "ErrNotFound" || r.Intent != "" {
				t.Errorf("%s of %q: %s", tool, id, raw)
			}
			answers = append(answers, raw)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(answers)))) != 1 {
		t.Errorf("the errors differ: %q", answers)
	}
	if got, err := h.journal.Get("", prepared.Intent); err != nil || got.State != intent.Prepared || h.paid() != 0 {
		t.Errorf("the intent is %+v, %v", got, err)
	}
}

// A server with another key for approvals on the same journal accepts none of the first's
// questions, and the other way round.
func TestTwoServersWithTheirOwnKeys(t *testing.T) {
	t.Parallel()
	c := open(t, intent.Payout)
	if _, err := c.journal.Decide("", c.id, 1, false, intent.ViaTerminal); err != nil {
		t.Fatal(err)
	}
	seal := func(letter string) *intent.Sealer {
		s, err := intent.NewSealer(bytes.Repeat([]byte(letter), 32))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	i, err := c.journal.Get("", c.id)
	if err != nil {
		t.Fatal(err)
	}
	state := seal("a").Seal(i, c.now)
	if _, err := seal("a").Open(state, i, c.now); err != nil {
		t.Error(err)
	}
	if _, err := seal("b").Open(state, i, c.now); err == nil {
		t.Error("another server's question is accepted")
	}
	if _, err := c.journal.Decide("", c.id, 1, true, intent.ViaTerminal); err == nil {
		t.Error("a round is decided twice")
	}
	if r := c.commit(); r.State != "prepared" || c.made() != 0 {
		t.Errorf("declined: %+v", r)
	}
}

// A state that the client changed is an error of the protocol; one that has expired is a
// result, which says what to do.
func TestAStateThatWasChanged(t *testing.T) {
	t.Parallel()
	h := connect(t, yes, "2026-07-28", everything...)
	prepared, _, _ := h.call("prepare_payout", invoice(5000))
	i, err := h.journal.Get("", prepared.Intent)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := intent.NewSealer(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	answer := func(state string) (*mcp.CallToolResult, error) {
		return h.session.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "commit_intent", Arguments: map[string]any{"intent": prepared.Intent},
			RequestState: state, InputResponses: mcp.InputResponseMap{"approve": yes("")},
		})
	}
	state := sealer.Seal(i, time.Now())
	for _, changed := range []string{"", "x", state + "-TAMPERED", strings.Replace(state, ".0.", ".1.", 1), "9" + state, strings.Replace(state, ".0.", ".zero.", 1)} {
		got, err := answer(changed)
		if failed, ok := errors.AsType[*jsonrpc.Error](err); !ok || failed.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("the state %q: %+v, %v", changed, got, err)
		}
	}
	if got, err := answer(sealer.Seal(i, time.Now().Add(-time.Hour))); err != nil || !got.IsError {
		t.Errorf("an expired state: %+v, %v", got, err)
	}
	if log := h.audit.String(); strings.Count(log, `"sentinel":"not_approved"`) != 7 || strings.Contains(log, "TAMPERED") {
		t.Errorf("the audit log is\n%s", log)
	}
	if h.paid() != 0 {
		t.Error("it is paid")
	}
	if got, err := answer(state); err != nil || got.IsError || h.paid() != 1 {
		t.Errorf("the state of the question: %+v, %v, %d are paid", got, err, h.paid())
	}
}
