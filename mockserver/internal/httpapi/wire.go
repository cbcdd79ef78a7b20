package httpapi

import "github.com/gateway-go/gateway/mockserver/internal/wire"

// stamp is a moment on the wire, or null.
type stamp = wire.Stamp

// nullable returns nil for "": null on the wire.
func nullable(s *string) *string { return wire.Nullable(s) }

// marshal encodes a body; the same value always gives the same bytes.
func marshal(v any) ([]byte, error) { return wire.Marshal(v) }
