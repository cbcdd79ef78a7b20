package mockserver

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/snapfile"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// ErrSnapshot means that a snapshot can't be restored: it is damaged, of another
// version, from a server with a different dialect or environment, or too large.
var ErrSnapshot = errors.New("mockserver: the snapshot can't be restored")

// snapshotVersion changes when the snapshot in an older data file can no
// longer be read; a snapshot in a separate file has the version of package
// snapfile.
const snapshotVersion = 2

type snapshot struct {
	Version     int
	Dialect     Dialect
	Mixture     string `json:",omitzero"` // the dialect, if it is neither Document nor Live
	Environment Environment
	Clock       clock.State
	RequestIDs  []byte
	Store       store.State
	Webhooks    deliver.Saved
}

// Snapshot returns the state of the gateway: accounts, clock, timers, webhooks
// and their receivers, and the state of the id generators, but not the journal,
// the faults or in-memory handlers. It waits for deliveries, at most for 5
// seconds: attempts that still run are repeated by the server that restores the
// snapshot. No request may be running.
//
// The bytes are a file: a JSON object with its format, version and checksum,
// which [Server.Restore], the control plane (PUT /__mock/snapshot) and the
// console of another process load. It contains API keys and webhook secrets in
// plain text.
func (s *Server) Snapshot() ([]byte, error) {
	if err := s.settle(); err != nil {
		return nil, err
	}
	snap, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	return snapfile.Seal(snapfile.File{
		Dialect: s.settings.dialect.String(), Environment: s.settings.environment.String(),
	}, snap)
}

func (s *Server) snapshot() (snapshot, error) { return s.snapshotAt(func() {}) }

// snapshotAt copies the state atomically and calls then: during both, no timer
// fires, nothing is committed and no delivery changes.
func (s *Server) snapshotAt(then func()) (snap snapshot, err error) {
	dialect, mixture := s.settings.stored()
	snap = snapshot{
		Version:     snapshotVersion,
		Dialect:     dialect,
		Mixture:     mixture,
		Environment: s.settings.environment,
	}
	if snap.RequestIDs, err = s.requestIDs.MarshalBinary(); err != nil {
		return snap, err
	}
	var clockState func() clock.State
	var webhooks func() (deliver.Saved, error)
	s.clock.BetweenTimers(func() {
		snap.Store, err = s.store.StateAt(func() {
			webhooks = s.sender.Capture(func() {
				clockState = s.clock.Capture()
				then()
			})
		})
	})
	if err != nil {
		return snap, err
	}
	snap.Clock = clockState()
	snap.Webhooks, err = webhooks()
	return snap, err
}

// Restore restores a snapshot of this server or of another one with the same dialect
// and environment: the same calls then give the same responses, and with a seed the
// same ids and webhooks. Its error matches [ErrSnapshot] if the snapshot is
// damaged, has a different version, dialect or environment, or exceeds the
// memory limit. If it fails, nothing has changed. It waits for deliveries like
// [Server.Snapshot], and aborts those that still run, with the requests that wait in
// a fault. No other request may be running.
func (s *Server) Restore(b []byte) error {
	file, err := snapfile.Open(b)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := s.speaks(file); err != nil {
		return err
	}
	var snap snapshot
	if err := json.Unmarshal(file.State, &snap); err != nil { //nolint:musttag // an internal format: its names are those of the records
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return s.replace(snap, "restore", func() { s.faults.Abort("") })
}

// speaks returns an error unless a file is from a server with the same dialect
// and environment.
func (s *Server) speaks(file snapfile.File) error {
	for _, is := range []struct{ what, here, there string }{
		{"dialect", s.settings.dialect.String(), file.Dialect},
		{"environment", s.settings.environment.String(), file.Environment},
	} {
		if is.here != is.there {
			return fmt.Errorf("%w: its %s is %q, and this server's is %q", ErrSnapshot, is.what, is.there, is.here)
		}
	}
	return nil
}

// replace replaces the gateway's state with a snapshot, or changes nothing.
// cause is reported in events. begin is called once the snapshot is accepted.
func (s *Server) replace(snap snapshot, cause string, begin func()) error {
	if err := s.accepts(snap); err != nil {
		return err
	}
	begin()
	if err := s.settle(); err != nil {
		return err
	}
	before, err := s.snapshot()
	if err != nil {
		return err
	}
	used := s.memory.Used()
	err = s.load(snap)
	if err == nil && !s.memory.Fits(0) && s.memory.Used() > used {
		err = fmt.Errorf("%w: it does not fit into the memory limit", ErrSnapshot)
	}
	if err == nil && s.data.file != nil {
		err = s.data.rewrite()
	}
	if err != nil {
		return errors.Join(err, s.load(before))
	}
	s.events.Publish("", events.Event{Type: events.TypeReset, Reset: &events.ResetEvent{Cause: cause}})
	return nil
}

// accepts returns why this server can't restore a snapshot, or nil.
func (s *Server) accepts(snap snapshot) error {
	dialect, mixture := s.settings.stored()
	switch {
	case snap.Version != snapshotVersion:
		return fmt.Errorf("%w: version %d", ErrSnapshot, snap.Version)
	case snap.Mixture != mixture:
		return fmt.Errorf("%w: it is from a gateway with another profile", ErrSnapshot)
	case snap.Dialect != dialect:
		return fmt.Errorf("%w: its dialect is %s, and this gateway's is %s", ErrSnapshot, snap.Dialect, dialect)
	case snap.Environment != s.settings.environment:
		return fmt.Errorf("%w: its environment is %s, and this gateway's is %s", ErrSnapshot, snap.Environment, s.settings.environment)
	}
	for _, err := range []error{snap.Clock.Check(), snap.Webhooks.Check()} {
		if err != nil {
			return fmt.Errorf("%w: it is damaged: %w", ErrSnapshot, err)
		}
	}
	return nil
}

// load turns panics into errors, because a snapshot that was edited and has a
// valid checksum may contain anything.
func (s *Server) load(snap snapshot) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it is damaged: %v", ErrSnapshot, p)
		}
	}()
	if err := s.clock.Restore(snap.Clock); err != nil {
		return err
	}
	if err := s.requestIDs.UnmarshalBinary(snap.RequestIDs); err != nil {
		return fmt.Errorf("%w: RequestIDs: %w", ErrSnapshot, err)
	}
	if err := s.store.Restore(snap.Store, snap.Clock.Now); err != nil {
		return fmt.Errorf("%w: it is damaged: %w", ErrSnapshot, err)
	}
	s.sender.Load(snap.Webhooks)
	return nil
}

// stored returns the form of a dialect in snapshots: a mixture is stored by
// its name.
func (c settings) stored() (dialect Dialect, mixture string) {
	switch c.dialect {
	case spec.DocumentDialect:
		return Document, ""
	case spec.LiveDialect:
		return Live, ""
	default:
		return Document, c.dialect.String()
	}
}
