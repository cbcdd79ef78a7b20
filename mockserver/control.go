package mockserver

import (
	"errors"
	"net/http"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/seed"
)

// controlPlane returns the handler of the paths under /__mock.
func (s *Server) controlPlane(api *httpapi.API) *admin.Plane {
	return admin.New(admin.Config{
		Origins:      s.settings.origins,
		Store:        s.store,
		Memory:       s.memory,
		Clock:        s.clock,
		Sender:       s.sender,
		Faults:       s.faults,
		Journal:      s.journal,
		Events:       s.events,
		API:          api,
		Authenticate: api.Authenticate,
		Default:      s.Key(),
		Down:         s.setDown,
		Moved:        s.data.moved,
		Snapshot:     s.Snapshot,
		Restore:      func(b []byte) error { return snapshotRefused(s.Restore(b)) },
		Seeded:       s.Seeded,
		Seed: func(key string, file []byte) (map[string]string, error) {
			ids, err := s.seed("", file, key)
			return ids, seedRefused(err)
		},
		Headers: s.settings.headers,
		Sandbox: s.settings.environment == Sandbox,
		Dialect: s.settings.dialect,
	})
}

// snapshotRefused maps the error of a file that can't be restored to the control
// plane's.
func snapshotRefused(err error) error {
	if errors.Is(err, ErrSnapshot) {
		return &admin.RefusedError{Status: http.StatusBadRequest, Code: "SNAPSHOT_REJECTED", Detail: strings.TrimPrefix(err.Error(), "mockserver: ")}
	}
	return err
}

// seedRefused is snapshotRefused for a seed file.
func seedRefused(err error) error {
	var faults seed.Errors
	switch {
	case errors.As(err, &faults):
		return &admin.RefusedError{Status: http.StatusBadRequest, Code: "VALIDATION_ERROR", Detail: faults.Error()}
	case errors.Is(err, errSeedRace):
		return &admin.RefusedError{Status: http.StatusConflict, Code: "CONFLICT", Detail: err.Error()}
	default:
		return snapshotRefused(err)
	}
}
