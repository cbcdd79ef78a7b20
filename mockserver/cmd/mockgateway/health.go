package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const healthTimeout = 5 * time.Second

// health checks whether the gateway at cfg.addr is ready. An image with only
// this binary has no curl for its health check.
func health(ctx context.Context, cfg config, out, _ io.Writer) error {
	addr, err := dialAddr(cfg.addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.tls.scheme()+addr+"/__mock/health", nil)
	if err != nil {
		return err
	}
	// No proxy: the gateway is on this machine or in this network.
	resp, err := (&http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it may be self-signed, and nothing secret is sent
	}).RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the gateway at %s returned %s", cfg.addr, resp.Status)
	case !strings.Contains(string(body), `"status":"ok"`):
		return fmt.Errorf("the server at %s is not a mock gateway", cfg.addr)
	}
	_, err = out.Write(body)
	return err
}
