package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Defect is a bug injected into a world, which the comparison of the books must
// find.
type Defect string

// The defects.
const (
	None                    Defect = ""
	StoresDuplicates        Defect = "the inbox stores duplicate events again"
	CommitsEffectSeparately Defect = "an effect and the completion of its event are committed separately"
	BooksRefundTwice        Defect = "a refund is booked both when it is made and when its webhook arrives"
	NeverReconciles         Defect = "the merchant never reconciles"
	RepeatsRefundBlindly    Defect = "a refund is sent again without reading the transaction first"
	NewReferenceForRepeats  Defect = "a create is repeated with a new reference"
	NewReferenceEachAttempt Defect = "the client generates a new reference for each attempt"
	IgnoresIdempotencyKeys  Defect = "the gateway ignores idempotency keys"
	LosesRenewal            Defect = "the gateway loses a renewal"
)

// client adds the client's defects between the client and the network.
func (d Defect) client(next http.RoundTripper) http.RoundTripper {
	if d != NewReferenceEachAttempt {
		return next
	}
	attempts := map[string]int{}
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost || r.Body == nil {
			return next.RoundTrip(r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text := externalRef.ReplaceAllStringFunc(string(body), func(member string) string {
			if attempts[member]++; attempts[member] == 1 {
				return member
			}
			return fmt.Sprintf(`%s-%d"`, strings.TrimSuffix(member, `"`), attempts[member])
		})
		out := r.Clone(r.Context())
		out.Body, out.GetBody, out.ContentLength = io.NopCloser(strings.NewReader(text)), nil, int64(len(text))
		return next.RoundTrip(out)
	})
}

var externalRef = regexp.MustCompile(`"external_ref":"[^"]*"`)

// gateway adds the gateway's defects in front of the gateway.
func (d Defect) gateway(next http.RoundTripper) http.RoundTripper {
	if d != IgnoresIdempotencyKeys {
		return next
	}
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		out := r.Clone(r.Context())
		out.Header.Del("Idempotency-Key")
		return next.RoundTrip(out)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// loseRenewal removes a subscription's scheduled renewal from the gateway. If
// there is none, it tries again the next day.
func (w *World) loseRenewal() {
	removed, err := w.dropTimer("subscription.period_end")
	switch {
	case err != nil:
		w.note("gateway", "editing the snapshot: %v", err)
	case !removed:
		w.agenda.add(time.Now().Add(day), decision, func(context.Context) { w.loseRenewal() }) //nolint:contextcheck // Snapshot takes none
	}
}

// dropTimer removes the first timer of a kind from a snapshot of the gateway and
// restores the snapshot.
func (w *World) dropTimer(kind string) (found bool, err error) {
	before, err := w.gw.Snapshot()
	if err != nil {
		return false, err
	}
	var file, state, clock map[string]json.RawMessage
	var timers []json.RawMessage
	err = errors.Join(
		json.Unmarshal(before, &file), json.Unmarshal(file["state"], &state),
		json.Unmarshal(state["Clock"], &clock), json.Unmarshal(clock["Timers"], &timers),
	)
	if err != nil {
		return false, err
	}
	for i, timer := range timers {
		var t struct {
			Kind string `json:"Kind"`
			ID   string `json:"ID"`
		}
		if err := json.Unmarshal(timer, &t); err != nil {
			return false, err
		}
		if t.Kind != kind {
			continue
		}
		w.note("gateway", "%s: loses its timer %s", t.ID, kind)
		timers = slices.Delete(timers, i, i+1)
		found = true
		break
	}
	if !found {
		return false, nil
	}
	after, err := pack(file, state, clock, timers)
	if err != nil {
		return false, err
	}
	return true, w.gw.Restore(after)
}

func pack(file, state, clock map[string]json.RawMessage, timers []json.RawMessage) ([]byte, error) {
	var errs [4]error
	clock["Timers"], errs[0] = json.Marshal(timers)
	state["Clock"], errs[1] = json.Marshal(clock)
	file["state"], errs[2] = json.Marshal(state)
	sum := sha256.Sum256(file["state"])
	file["sha256"], errs[3] = json.Marshal(hex.EncodeToString(sum[:]))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return json.Marshal(file)
}
