package core

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

// ErrSnapshot means that a snapshot can't be restored.
var ErrSnapshot = errors.New("mockserver: the snapshot can't be restored")

// snapshotVersion changes when the snapshot in an older data file can no
// longer be read; a snapshot in a separate file has the version of package
// snapfile.
const snapshotVersion = 2

// Snapshot is the state of a gateway in a snapshot and in a data file.
type Snapshot struct {
	Version     int
	Dialect     dialect
	Mixture     string `json:",omitzero"` // the dialect, if it is neither of the two
	Environment environment
	Clock       clock.State
	RequestIDs  []byte
	Store       store.State
	Webhooks    deliver.Saved
}

// dialect and environment are stored as the numbers that they have in package mockserver.
type (
	dialect     uint8
	environment uint8
)

func (d dialect) String() string {
	if d == 1 {
		return spec.LiveDialect.String()
	}
	return spec.DocumentDialect.String()
}

func (e environment) String() string {
	if e == 1 {
		return "production"
	}
	return "sandbox"
}

func (c *Config) environment() environment {
	if c.Production {
		return 1
	}
	return 0
}

// Snapshot returns the state of the gateway as a file; see package snapfile. It waits
// for deliveries, at most for [patience].
func (c *Core) Snapshot() ([]byte, error) {
	if err := c.settle(); err != nil {
		return nil, err
	}
	snap, err := c.state()
	if err != nil {
		return nil, err
	}
	return snapfile.Seal(snapfile.File{
		Dialect: c.Dialect.String(), Environment: c.Environment(),
	}, snap)
}

func (c *Core) state() (Snapshot, error) { return c.stateAt(func() {}) }

// emptySnapshot says which gateway the snapshot is from.
func (c *Core) emptySnapshot() Snapshot {
	own, mixture := c.storedDialect()
	return Snapshot{Version: snapshotVersion, Dialect: own, Mixture: mixture, Environment: c.environment()}
}

// stateAt copies the state atomically and calls then: during both, no timer
// fires, nothing is committed and no delivery changes.
func (c *Core) stateAt(then func()) (snap Snapshot, err error) {
	snap = c.emptySnapshot()
	if snap.RequestIDs, err = c.requestIDs.MarshalBinary(); err != nil {
		return snap, err
	}
	var clockState func() clock.State
	var webhooks func() (deliver.Saved, error)
	c.Clock.BetweenTimers(func() {
		snap.Store, err = c.Store.StateAt(func() {
			webhooks = c.Sender.Capture(func() {
				clockState = c.Clock.Capture()
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

// Restore replaces the state with that of a file. If it fails, nothing has changed; the
// error matches [ErrSnapshot] if the file can't be restored.
func (c *Core) Restore(b []byte) error {
	file, err := snapfile.Open(b)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := c.speaks(file); err != nil {
		return err
	}
	var snap Snapshot
	if err := json.Unmarshal(file.State, &snap); err != nil { //nolint:musttag // an internal format: its names are those of the records
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return c.replace(snap, "restore", func() { c.Faults.Abort("") })
}

// speaks returns an error unless a file is from a server with the same dialect
// and environment.
func (c *Core) speaks(file snapfile.File) error {
	for _, is := range []struct{ what, here, there string }{
		{"dialect", c.Dialect.String(), file.Dialect},
		{"environment", c.Environment(), file.Environment},
	} {
		if is.here != is.there {
			return fmt.Errorf("%w: its %s is %q, and this server's is %q", ErrSnapshot, is.what, is.there, is.here)
		}
	}
	return nil
}

// replace replaces the gateway's state with a snapshot, or changes nothing.
// cause is reported in events. begin is called once the snapshot is accepted.
func (c *Core) replace(snap Snapshot, cause string, begin func()) error {
	if err := c.accepts(snap); err != nil {
		return err
	}
	begin()
	if err := c.settle(); err != nil {
		return err
	}
	before, err := c.state()
	if err != nil {
		return err
	}
	used := c.Memory.Used()
	err = c.load(snap)
	if err == nil && !c.Memory.Fits(0) && c.Memory.Used() > used {
		err = fmt.Errorf("%w: it does not fit into the memory limit", ErrSnapshot)
	}
	if err == nil && c.data.file != nil {
		err = c.rewriteData(c.data.file)
	}
	if err != nil {
		return errors.Join(err, c.load(before))
	}
	c.Events.Publish("", events.Event{Type: events.TypeReset, Reset: &events.ResetEvent{Cause: cause}})
	return nil
}

// accepts returns why this server can't restore a snapshot, or nil.
func (c *Core) accepts(snap Snapshot) error {
	own, mixture := c.storedDialect()
	switch {
	case snap.Version != snapshotVersion:
		return fmt.Errorf("%w: version %d", ErrSnapshot, snap.Version)
	case snap.Mixture != mixture:
		return fmt.Errorf("%w: it is from a gateway with another profile", ErrSnapshot)
	case snap.Dialect != own:
		return fmt.Errorf("%w: its dialect is %s, and this gateway's is %s", ErrSnapshot, snap.Dialect, own)
	case snap.Environment != c.environment():
		return fmt.Errorf("%w: its environment is %s, and this gateway's is %s", ErrSnapshot, snap.Environment, c.environment())
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
func (c *Core) load(snap Snapshot) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it is damaged: %v", ErrSnapshot, p)
		}
	}()
	if err := c.Clock.Restore(snap.Clock); err != nil {
		return err
	}
	if err := c.requestIDs.UnmarshalBinary(snap.RequestIDs); err != nil {
		return fmt.Errorf("%w: RequestIDs: %w", ErrSnapshot, err)
	}
	if err := c.Store.Restore(snap.Store, snap.Clock.Now); err != nil {
		return fmt.Errorf("%w: it is damaged: %w", ErrSnapshot, err)
	}
	c.Sender.Load(snap.Webhooks)
	return nil
}

// storedDialect returns the form of the dialect in snapshots: a mixture is stored by
// its name.
func (c *Config) storedDialect() (d dialect, mixture string) {
	switch c.Dialect {
	case spec.DocumentDialect:
		return 0, ""
	case spec.LiveDialect:
		return 1, ""
	default:
		return 0, c.Dialect.String()
	}
}
