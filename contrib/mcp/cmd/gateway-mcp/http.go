package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpServer serves a plane over streamable HTTP. Pages of other origins and other host
// names are rejected, so that a web page can't call the tools.
type httpServer struct {
	plane, addr     string
	token           string // that clients must send; "" requires none
	tlsCert, tlsKey string
	drain           time.Duration // how long running calls may take at the end
}

// serve serves until the context ends.
func (h *httpServer) serve(ctx context.Context, s *mcp.Server, stderr io.Writer) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", h.addr)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.NewCrossOriginProtection().Handler(h.handler(s)), ReadHeaderTimeout: 10 * time.Second}
	scheme, serve := "http", func() error { return srv.Serve(l) }
	if h.tlsCert != "" {
		scheme, serve = "https", func() error { return srv.ServeTLS(l, h.tlsCert, h.tlsKey) }
	}
	_, _ = fmt.Fprintf(stderr, "gateway-mcp %s: serving MCP at %s://%s\n", h.plane, scheme, l.Addr())
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.drain)
		defer cancel()
		if srv.Shutdown(drain) != nil {
			_ = srv.Close()
		}
	})()
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

func (h *httpServer) handler(s *mcp.Server) http.Handler {
	handler := http.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
	if h.token == "" {
		return handler
	}
	return auth.RequireBearerToken(verifier(h.token), &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(handler)
}

// verifier accepts one token. The principal is a digest of it, so that intents belong to
// whoever has the token. Hashes hide the token's length from the time of the comparison.
func verifier(token string) auth.TokenVerifier {
	want := sha256.Sum256([]byte(token))
	return func(_ context.Context, given string, _ *http.Request) (*auth.TokenInfo, error) {
		got := sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: hex.EncodeToString(got[:6])}, nil
	}
}
