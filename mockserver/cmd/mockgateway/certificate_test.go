package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Clients that trust the written certificate reach the gateway by every name that it has.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl")
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	g := start(t, "-tls-self-signed", cert, "-allow-host", "gateway.test,*")
	https := strings.Replace(g.base, "http://", "https://", 1)
	assert.Contains(t, g.printed(), "base URL       "+https+"\n")

	text, err := os.ReadFile(cert)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "PRIVATE")
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "shop.localhost", "gateway.test"} {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true,
		}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, https+"/__mock/health", nil)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err, name)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusOK, resp.StatusCode)

		req.URL.Path = "/v2/transactions"
		req.Header.Set("X-Mock-Fault", "reset-before")
		_, err = client.Do(req) //nolint:bodyclose // there is no response
		require.ErrorIs(t, err, syscall.ECONNRESET, "as without TLS")
	}
	command, _ := bannersCommand(t, g)
	out, err := exec.CommandContext(t.Context(), "bash", "-c", command).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), `"status":"pending"`)

	var printed bytes.Buffer
	args := []string{"-health", "-tls-self-signed", cert, "-addr", strings.TrimPrefix(https, "https://")}
	require.Zero(t, run(context.Background(), args, nil, &printed, &printed), printed.String())

	c := certificate{selfSigned: cert}
	pair, err := c.create(time.Now())
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	g = start(t, "-tls-cert", cert, "-tls-key", key)
	assert.Contains(t, g.printed(), "https://")

	for want, args := range map[string][]string{
		"-tls-cert: ":          {"-tls-cert", key, "-tls-key", cert},
		"-tls-self-signed: ":   {"-tls-self-signed", filepath.Join(dir, "missing", "cert.pem")},
		"must be set together": {"-tls-cert", cert},
		"can't both be set":    {"-tls-cert", cert, "-tls-key", key, "-tls-self-signed", key},
	} {
		_, err := tryStart(t, args...)
		require.ErrorContains(t, err, want)
	}
}
