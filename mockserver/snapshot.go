package mockserver

import "github.com/gateway-go/gateway/mockserver/internal/core"

// ErrSnapshot means that a snapshot can't be restored: it is damaged, of another
// version, from a server with a different dialect or environment, or too large.
var ErrSnapshot = core.ErrSnapshot

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
func (s *Server) Snapshot() ([]byte, error) { return s.core.Snapshot() }

// Restore restores a snapshot of this server or of another one with the same dialect
// and environment: the same calls then give the same responses, and with a seed the
// same ids and webhooks. Its error matches [ErrSnapshot] if the snapshot is
// damaged, has a different version, dialect or environment, or exceeds the
// memory limit. If it fails, nothing has changed. It waits for deliveries like
// [Server.Snapshot], and aborts those that still run, with the requests that wait in
// a fault. No other request may be running.
func (s *Server) Restore(b []byte) error { return s.core.Restore(b) }
