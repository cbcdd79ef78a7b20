package mockserver

import (
	"reflect"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/core"
)

// WithBodyTimeout sets how long a request's body may take to arrive.
func WithBodyTimeout(d time.Duration) Option { return func(s *settings) { s.BodyTimeout = d } }

// SnapshotType is the type of the state in a snapshot file.
var SnapshotType = reflect.TypeFor[core.Snapshot]()
