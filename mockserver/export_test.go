package mockserver

import (
	"reflect"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
)

// WithBodyTimeout sets how long a request's body may take to arrive.
func WithBodyTimeout(d time.Duration) Option { return func(s *settings) { s.bodyTimeout = d } }

// ControlCalls lists the calls of the control plane: "POST /__mock/reset".
func ControlCalls(s *Server) []string { return s.controlPlane(httpapi.New(httpapi.Config{})).Calls() }

// SnapshotType is the type of the state in a snapshot file.
var SnapshotType = reflect.TypeFor[snapshot]()
