package mockserver

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/gateway-go/gateway/mockserver/internal/core"
)

// WithSeedFile creates the resources in a file when the gateway starts; see
// [Server.Seed]. If the gateway's data file (see [WithDataFile]) already has
// resources, nothing is changed and [Server.Seeded] returns nil.
func WithSeedFile(path string) Option { return func(s *settings) { s.SeedFile = path } }

// Seed creates the resources in a seed file: customers, checkout links,
// transactions, transfers and subscriptions, in the given states and at times
// in the past. docs/mockgateway.md describes the file. Each entry is checked
// by the interface's own rules and reaches its state by real transitions. No
// webhook is sent unless the file has "webhooks": true.
//
// It returns the ids of the entries that have a name; the id of a checkout
// link is its slug. The error names the line, column and member of every
// mistake: "shop.json:12:5: customers[2].email: must be an e-mail address". If
// there is an error, nothing is created. Accounts that the file does not name are
// unaffected; requests of those that it names must not run meanwhile.
func (s *Server) Seed(r io.Reader) (ids map[string]string, err error) {
	name := ""
	if named, ok := r.(interface{ Name() string }); ok {
		name = filepath.Base(named.Name())
	}
	text, err := io.ReadAll(io.LimitReader(r, core.MaxSeed+1))
	if err != nil {
		return nil, fmt.Errorf("mockserver: reading the seed file: %w", err)
	}
	if ids, err = s.core.Seed(name, text, s.Key()); err != nil {
		return nil, fmt.Errorf("mockserver: %w", err)
	}
	return ids, nil
}

// Seeded returns the ids of the named entries of every seed file that [Server.Seed] or
// [WithSeedFile] has applied since the start, or nil if there was none.
func (s *Server) Seeded() map[string]string { return s.core.Seeded(s.Key()) }
