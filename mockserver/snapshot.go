package mockserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// ErrSnapshot says that a snapshot can't be restored here: it is damaged, or of
// a server with another dialect or environment.
var ErrSnapshot = errors.New("mockserver: not a snapshot of such a server")

// snapshotVersion changes when older snapshots can no longer be read.
const snapshotVersion = 2

type snapshot struct {
	Version     int
	Dialect     Dialect
	Environment Environment
	Clock       clock.State
	RequestIDs  []byte
	Store       store.State
	Webhooks    deliver.Saved
}

// Snapshot returns all that the gateway knows: accounts, clock, timers, webhooks
// and their receivers, and where the sources of ids stand. The journal of
// requests, the faults and handlers in memory are not in it. No request may be
// on its way; deliveries are waited for.
//
// A snapshot holds API keys and webhook secrets in clear.
func (s *Server) Snapshot() ([]byte, error) {
	if err := s.Wait(context.Background()); err != nil {
		return nil, err
	}
	snap, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	return json.Marshal(snap) //nolint:musttag // our own format: its names are those of the records
}

func (s *Server) snapshot() (snap snapshot, err error) {
	snap = snapshot{
		Version:     snapshotVersion,
		Dialect:     s.settings.dialect,
		Environment: s.settings.environment,
		Clock:       s.clock.State(),
	}
	if snap.RequestIDs, err = s.requestIDs.MarshalBinary(); err != nil {
		return snap, err
	}
	if snap.Store, err = s.store.State(); err != nil {
		return snap, err
	}
	snap.Webhooks, err = s.sender.Save()
	return snap, err
}

// Restore puts the gateway back to a snapshot of itself or of another server
// with the same dialect and environment: from there on the same calls give the
// same responses, ids and webhooks, where the snapshot's server had a seed. This
// is the way to an earlier moment. Where it fails, nothing has changed. No
// request may be on its way.
func (s *Server) Restore(b []byte) error {
	var snap snapshot
	if err := json.Unmarshal(b, &snap); err != nil { //nolint:musttag // as in Snapshot
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := s.accepts(snap); err != nil {
		return err
	}
	if err := s.Wait(context.Background()); err != nil {
		return err
	}
	before, err := s.snapshot()
	if err != nil {
		return err
	}
	if err := s.load(snap); err != nil {
		return errors.Join(err, s.load(before))
	}
	s.events.Publish("", events.Event{Type: events.TypeReset, Reset: &events.ResetEvent{Cause: "restore"}})
	return s.data.persist(entry{Snapshot: &snap})
}

// accepts returns why a snapshot is not of a server like this one, or nil.
func (s *Server) accepts(snap snapshot) error {
	switch {
	case snap.Version != snapshotVersion:
		return fmt.Errorf("%w: version %d", ErrSnapshot, snap.Version)
	case snap.Dialect != s.settings.dialect:
		return fmt.Errorf("%w: the dialects differ", ErrSnapshot)
	case snap.Environment != s.settings.environment:
		return fmt.Errorf("%w: the environments differ", ErrSnapshot)
	}
	return nil
}

func (s *Server) load(snap snapshot) error {
	if err := s.clock.Restore(snap.Clock); err != nil {
		return err
	}
	if err := s.requestIDs.UnmarshalBinary(snap.RequestIDs); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := s.store.Restore(snap.Store); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return s.sender.Load(snap.Webhooks)
}
