package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/gateway-go/gateway"
)

// round is one pass over the open resources.
type round struct {
	*Reconciler

	began  time.Time // before Open read anything
	replay bool      // handle events that are done too
	tasks  sync.WaitGroup
	slots  chan struct{}

	mu    sync.Mutex
	sum   Reconciliation
	known map[string]time.Time // the suspects of this round
	swept map[string]time.Time // what the sweep of this round has reported

	opened map[string]bool // ids that Open has yielded
}

func (r *Reconciler) begin() *round {
	return &round{
		Reconciler: r, began: time.Now(),
		slots: make(chan struct{}, r.cfg.Concurrent), known: make(map[string]time.Time),
		swept: make(map[string]time.Time), opened: make(map[string]bool),
	}
}

// end keeps the round's suspects. Suspects that a complete round did not see
// are no longer open.
func (r *Reconciler) end(ro *round, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if complete || r.suspects == nil {
		r.suspects, r.swept = ro.known, ro.swept
		return
	}
	maps.Copy(r.suspects, ro.known)
	maps.Copy(r.swept, ro.swept)
}

func (ro *round) run(ctx context.Context) error {
	var refs []OpenResource
	for open, err := range ro.cfg.Open(ctx) {
		if err != nil {
			return err
		}
		if open.ID == "" && open.ExternalRef != "" {
			refs = append(refs, open)
			continue
		}
		ro.opened[open.ID] = true
		if err := ro.start(ctx, open); err != nil {
			return err
		}
	}
	if err := ro.resolve(ctx, refs); err != nil {
		return err
	}
	if err := ro.sweep(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

// acquire waits for a slot. The caller must free it with release.
func (ro *round) acquire(ctx context.Context) error {
	select {
	case ro.slots <- struct{}{}:
		return nil
	case <-ro.rx.quit:
		return ErrShutdown
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (ro *round) release() { <-ro.slots }

// start checks a resource in the background, once a slot is free.
func (ro *round) start(ctx context.Context, open OpenResource) error {
	if err := ro.acquire(ctx); err != nil {
		return err
	}
	ro.tasks.Go(func() {
		defer ro.release()
		one := Reconciliation{Checked: 1, Failed: 1}
		err := ro.rx.guarded(ctx, "the check of a resource", func() (err error) {
			one, err = ro.check(ctx, open)
			return err
		})
		if err != nil {
			ro.failed(ctx, open, err)
		}
		ro.add(one)
	})
	return nil
}

func (ro *round) failed(ctx context.Context, open OpenResource, err error) {
	ro.rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: a resource was not reconciled", openAttrs(open, errorAttr(err))...)
}

// openAttrs names one of the merchant's records in a log that an operator reads.
func openAttrs(open OpenResource, attrs ...slog.Attr) []slog.Attr {
	which := []slog.Attr{slog.String("family", string(open.Family)), slog.String("id", open.ID)}
	if open.ExternalRef != "" {
		which = append(which, slog.String("external_ref", open.ExternalRef))
	}
	return append(which, attrs...)
}

func (ro *round) add(one Reconciliation) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	ro.sum.Checked += one.Checked
	ro.sum.Missing += one.Missing
	ro.sum.Failed += one.Failed
	ro.sum.Found += one.Found
	ro.sum.Known += one.Known
	ro.sum.Repaired += one.Repaired
	ro.sum.Unapplied += one.Unapplied
	ro.sum.Undecided += one.Undecided
}

// check compares one resource with the records.
func (ro *round) check(ctx context.Context, open OpenResource) (Reconciliation, error) {
	one := Reconciliation{Checked: 1}
	fail := func(err error) (Reconciliation, error) {
		one.Failed = 1
		return one, err
	}
	if !open.Family.known() || open.ID == "" {
		return fail(errors.New("webhook: an OpenResource needs a known Family, and an ID or an ExternalRef"))
	}
	if !ro.rx.enter() {
		return fail(ErrShutdown)
	}
	defer ro.rx.running.Done()
	res, err := ro.rx.judge.signed.api.read(ctx, open.Family, open.ID)
	switch {
	case errors.Is(err, errUnknownResource):
		one.Missing++
		ro.rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: the API has no resource with the id in the records: does it belong to another account or environment?", openAttrs(open)...)
		return one, nil
	case err != nil:
		return fail(err)
	}
	for _, kind := range happenedSince(open, res, ro.rx.cfg.Now()) {
		if err := ro.pass(ctx, open, kind, res, &one); err != nil {
			return fail(err) // later events would be out of order
		}
	}
	if open.swept {
		ro.remember(res)
	}
	return one, nil
}

// pass passes one event to the receiver and counts its outcome.
func (ro *round) pass(ctx context.Context, open OpenResource, kind Kind, res *resource, one *Reconciliation) error {
	rec, err := ro.record(open, kind, res)
	if err != nil {
		return err
	}
	if ro.replay {
		id, err := uuid.NewRandom()
		if err != nil {
			return err
		}
		return ro.again(ctx, rec, "replay "+id.String(), one)
	}
	result, err := ro.accept(ctx, rec)
	switch {
	case err != nil:
		return err
	case result.Outcome != OutcomeDuplicate:
		one.Found++
		return nil
	case result.state == StateDone && !open.swept && ro.contradicted(rec.Fact):
		return ro.again(ctx, rec, "repair", one)
	default:
		one.Known++
		return nil
	}
}

// contradicted reports whether the resource is open in the records although
// its event has been done for RepairAfter. The records were read after that
// time, so they are not merely behind: the effect is missing.
func (ro *round) contradicted(fact string) bool {
	ro.Reconciler.mu.Lock()
	since, suspect := ro.suspects[fact]
	ro.Reconciler.mu.Unlock()
	if !suspect {
		since = time.Now()
	}
	ro.mu.Lock()
	ro.known[fact] = since
	ro.mu.Unlock()
	return suspect && ro.cfg.RepairAfter > 0 && ro.began.Sub(since) >= ro.cfg.RepairAfter
}

// again has a completed event handled again, as a separate event whose key
// starts with the label: of several processes with the same label only one
// handles it. It is never late, since the records do not have it.
func (ro *round) again(ctx context.Context, rec Record, label string, one *Reconciliation) error {
	rec.Key, rec.Fact, rec.Position, rec.Late = label+" "+rec.Key, "", 0, false
	id := factID(rec.Key)
	rec.Body, rec.EventID = bytes.Replace(rec.Body, []byte(rec.EventID), []byte(id), 1), id
	result, err := ro.accept(ctx, rec)
	switch {
	case err != nil:
		return err
	case result.Outcome != OutcomeDuplicate:
		one.Repaired++
	case result.state == StateDone:
		one.Unapplied++
	default:
		one.Known++
	}
	return nil
}

// accept has the receiver handle or store an event.
func (ro *round) accept(ctx context.Context, rec Record) (result, error) {
	handle := ro.rx.accept
	if ro.replay && ro.rx.cfg.Mode == Sync {
		handle = ro.rx.acceptOnce
	}
	ctx = ro.rx.opened(ctx, nil)
	result := handle(ctx, rec)
	ro.rx.report(ctx, result.Observation)
	if !result.Outcome.settled() || (ro.replay && result.Outcome == OutcomeDead) {
		return result, fmt.Errorf("webhook: %s of %s: %s: %w", rec.Kind, rec.Resource, result.Outcome, result.Err)
	}
	return result, nil
}

// acceptOnce is accept for an event whose key is used once: nothing would retry it,
// so it becomes a dead letter if its handler fails.
func (rx *Receiver) acceptOnce(ctx context.Context, rec Record) result {
	if rx.runs.isPaused() {
		return busy(ErrPaused)
	}
	rec.Trace = rx.trace(ctx)
	entry, err := rx.cfg.Store.Put(ctx, rec)
	if err != nil {
		return storeError(rec, err)
	}
	return rx.handleLastTime(ctx, entry.Key, rec)
}

// record returns the event of a kind, if the resource proves it.
func (ro *round) record(open OpenResource, kind Kind, res *resource) (Record, error) {
	e := &Event{Family: open.Family, Kind: kind, ResourceID: open.ID, Source: SourceReconciler}
	c := confirmationBy(e, res, ro.rx.cfg.Now())
	if c.verdict != confirmed {
		return Record{}, fmt.Errorf("%w: the resource is %s", ErrUnconfirmed, c.status)
	}
	return rebuilt(e, c, res)
}

// clockMargin is how far the merchant's clock may be ahead of the gateway's
// when a reference's Since bounds the search.
const clockMargin = time.Hour

// resolve looks up the resources for which the records have only a reference.
// All references of a family are found in one pass over the newest pages of its
// list: the API has no filter for them.
func (ro *round) resolve(ctx context.Context, refs []OpenResource) error {
	byFamily := make(map[Family][]OpenResource)
	for _, open := range refs {
		if err := searchable(open); err != nil {
			ro.failed(ctx, open, err)
			ro.add(Reconciliation{Checked: 1, Failed: 1})
			continue
		}
		byFamily[open.Family] = append(byFamily[open.Family], open)
	}
	for _, family := range [...]Family{FamilyTransaction, FamilyTransfer} {
		if len(byFamily[family]) == 0 {
			continue
		}
		if err := ro.search(ctx, family, byFamily[family]); err != nil {
			return err
		}
	}
	return nil
}

func searchable(open OpenResource) error {
	switch {
	case open.Family == FamilySubscription:
		return errors.New("webhook: a subscription can't be looked up by its idempotency key: repeat Create with the same key")
	case open.Family != FamilyTransaction && open.Family != FamilyTransfer:
		return fmt.Errorf("webhook: resources of the family %q have no references", open.Family)
	case open.Since.IsZero():
		return errors.New("webhook: an ExternalRef needs Since, the time of the first create")
	default:
		return nil
	}
}

// search finds the references in the list of a family, and settles the missing
// ones in the order in which Open yielded them.
func (ro *round) search(ctx context.Context, family Family, refs []OpenResource) error {
	wanted := make(map[string]OpenResource, len(refs))
	for _, open := range refs {
		wanted[open.ExternalRef] = open
	}
	began := ro.rx.cfg.Now()
	found, whole, err := ro.find(ctx, family, wanted)
	for _, open := range found {
		if failed := ro.identified(ctx, open); failed != nil {
			return failed
		}
	}
	for _, open := range refs {
		if _, left := wanted[open.ExternalRef]; !left {
			continue
		}
		delete(wanted, open.ExternalRef) // Open may yield it twice
		one := Reconciliation{Checked: 1}
		switch {
		case err != nil:
			one.Failed++
			ro.failed(ctx, open, err)
		case !whole || began.Sub(open.Since) < ro.cfg.MinAge:
			one.Undecided++
		default:
			one = ro.absent(ctx, open)
		}
		ro.add(one)
	}
	if errors.Is(err, ErrShutdown) {
		return err
	}
	return ctx.Err()
}

// find removes the references that it finds from wanted, and returns them with
// their ids. It reports whether it has read all resources that are recent
// enough.
func (ro *round) find(ctx context.Context, family Family, wanted map[string]OpenResource) (found []OpenResource, whole bool, err error) {
	if err := ro.acquire(ctx); err != nil {
		return nil, false, err
	}
	defer ro.release()
	left := ro.cfg.SearchPages * pageSize
	for item, err := range ro.newest(ctx, family, oldest(wanted)) {
		if err != nil {
			return found, false, err
		}
		if left--; left < 0 {
			return found, false, nil
		}
		open, ok := wanted[item.ref]
		if !ok {
			continue
		}
		delete(wanted, item.ref)
		open.ID = item.id
		if found = append(found, open); len(wanted) == 0 {
			break
		}
	}
	return found, true, nil
}

// identified reports the id to the merchant, and then checks the resource.
func (ro *round) identified(ctx context.Context, open OpenResource) error {
	if ro.cfg.Identified != nil {
		if err := ro.cfg.Identified(ctx, open); err != nil {
			ro.failed(ctx, open, err)
			ro.add(Reconciliation{Checked: 1, Failed: 1})
			return nil
		}
	}
	return ro.start(ctx, open)
}

func (ro *round) absent(ctx context.Context, open OpenResource) Reconciliation {
	one := Reconciliation{Checked: 1, Missing: 1}
	if ro.cfg.Absent == nil {
		ro.rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: a create was not carried out, and there is no Absent function to send it again", openAttrs(open)...)
		return one
	}
	if err := ro.cfg.Absent(ctx, open); err != nil {
		one.Failed++
		ro.failed(ctx, open, err)
	}
	return one
}

func oldest(wanted map[string]OpenResource) (since time.Time) {
	for _, open := range wanted {
		if since.IsZero() || open.Since.Before(since) {
			since = open.Since
		}
	}
	return since.Add(-clockMargin)
}

// pageSize is the largest page that the interface allows.
const pageSize = 100

// listed has the members of a list item that a search needs.
type listed struct{ ref, id string }

// newest iterates over a family's resources that were created after since, the
// newest first. The list of transfers can't be filtered by creation time.
func (ro *round) newest(ctx context.Context, family Family, since time.Time) iter.Seq2[listed, error] {
	api := ro.rx.cfg.API
	if family == FamilyTransfer {
		return eachListed(api.Transfers.All(ctx, gateway.TransferListParams{Limit: pageSize}), func(tr *gateway.Transfer) (listed, bool) {
			return listed{ref: tr.ExternalRef, id: tr.ID}, !tr.CreatedAt.IsZero() && tr.CreatedAt.Before(since)
		})
	}
	params := gateway.TransactionListParams{Limit: pageSize, From: since}
	return eachListed(api.Transactions.All(ctx, params), func(tx *gateway.Transaction) (listed, bool) {
		return listed{ref: tx.ExternalRef, id: tx.ID}, false
	})
}

// eachListed iterates over items until one is too old.
func eachListed[T any](items iter.Seq2[T, error], read func(T) (one listed, old bool)) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		for item, err := range items {
			var one listed
			old := false
			if err == nil {
				one, old = read(item)
			}
			if old || !yield(one, err) || err != nil {
				return
			}
		}
	}
}
