package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// profileOf writes a file for -profile.
func profileOf(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestAProfileSetsSingleRowsOfTheDialects(t *testing.T) {
	t.Parallel()
	g := start(t, "-profile", profileOf(t, `{"gateway":"https://sandbox.gateway.example","results":[
		{"id":"validation-status","verdict":"differs","reading":"live"},
		{"id":"transfer-minimum","verdict":"agrees","reading":"document"},
		{"id":"malformed-id","verdict":"can't tell","why":"the gateway was down"},
		{"id":"list-order","verdict":"differs","reading":"the older transaction is listed first"}]}`))
	status, body, err := g.call(http.MethodPost, "/v2/transfers", `{"pix_key_type":"EMAIL","pix_key_value":"a@example.com","amount":0}`)
	assert.Equal(t, http.StatusUnprocessableEntity, status, body)
	require.NoError(t, err)
	status, body, err = g.call(http.MethodPost, "/v2/transfers", `{"pix_key_type":"EMAIL","pix_key_value":"a@example.com","amount":1}`)
	assert.Equal(t, http.StatusCreated, status, body)
	require.NoError(t, err)
	_, health, err := g.call(http.MethodGet, "/__mock/health", "")
	require.NoError(t, err)
	assert.Equal(t, "live in validation-status", health["data"].(map[string]any)["dialect"])
	g.kill()
	assert.Contains(t, g.printed(), "\n  dialect        live in validation-status\n")
	assert.Contains(t, g.errs.String(), "mockgateway: the profile is ignored in rows that have no setting: list-order\n")
}

func TestAProfileThatCantBeUsedIsRejected(t *testing.T) {
	t.Parallel()
	good := profileOf(t, `{"readings":{"validation-status":"live"}}`)
	for want, args := range map[string][]string{
		"-profile: open ":                    {"-profile", filepath.Join(t.TempDir(), "none")},
		"neither a profile":                  {"-profile", profileOf(t, `{}`)},
		`has no row "no-such-row"`:           {"-profile", profileOf(t, `{"readings":{"no-such-row":"live"}}`)},
		"-profile sets the dialect":          {"-profile", good, "-dialect", "live"},
		"-profile sets the dialect,":         {"-profile", good, "-lenient"},
		"remove -dialect, -lenient, -fee or": {"-profile", good, "-fee", "1"},
		"-fee or -settled-percent":           {"-profile", good, "-settled-percent", "50"},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), args, nil, &out, &errs), args)
		assert.Contains(t, errs.String(), want)
	}
}
