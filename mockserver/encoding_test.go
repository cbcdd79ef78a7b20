package mockserver_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
)

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// A compressed body is that of its content: its size is limited, card data in it is
// rejected, and the journal masks it.
func TestEncodedBodies(t *testing.T) {
	t.Parallel()
	const charge = `{"amount":1990,"method":"pix","buyer":{"name":"Ana","email":"ana@shop.test","document":{"type":"CPF","number":"12345678909"}},` +
		`"products":[{"name":"Book","price":1990}]}`
	const endpoint = `{"url":"https://shop.test/hook"}`
	bomb := `{"a":"` + strings.Repeat("a", 2<<20) + `"}`
	type encoded struct {
		path, encoding, body string
		status               int
		detail               string
	}
	for name, in := range map[string]encoded{
		"none":                    {"/v2/transactions", "", charge, 201, ""},
		"identity":                {"/v2/transactions", "identity", charge, 201, ""},
		"a charset":               {"/v2/transactions", "UTF-8", charge, 201, ""},
		"gzip":                    {"/v2/transactions", "gzip", gzipped(t, charge), 201, ""},
		"x-gzip, in capitals":     {"/v2/transactions", "X-GZIP, identity", gzipped(t, charge), 201, ""},
		"gzip to the plane":       {"/__mock/endpoints", "gzip", gzipped(t, endpoint), 200, ""},
		"a mark":                  {"/v2/transactions", "", "\ufeff" + charge, 400, "byte order mark"},
		"a mark, compressed":      {"/v2/transactions", "gzip", gzipped(t, "\ufeff"+charge), 400, "byte order mark"},
		"a mark for the plane":    {"/__mock/endpoints", "", "\ufeff" + endpoint, 400, "byte order mark"},
		"nothing":                 {"/__mock/deliveries/wait", "gzip", "", 200, ""},
		"nothing at all":          {"/__mock/deliveries/wait", "br", "", 200, ""},
		"card data":               {"/v2/transactions", "gzip", gzipped(t, `{"metadata":{"cvv":"123"},`+charge[1:]), 400, "invalid"},
		"a bomb":                  {"/v2/transactions", "gzip", gzipped(t, bomb), 413, "1 MiB"},
		"a bomb for the plane":    {"/__mock/endpoints", "gzip", gzipped(t, bomb), 413, "1024 KiB"},
		"not gzip":                {"/v2/transactions", "gzip", charge, 400, "not in gzip format"},
		"not gzip, for the plane": {"/__mock/endpoints", "gzip", endpoint, 400, "not in gzip format"},
		"cut off":                 {"/v2/transactions", "gzip", gzipped(t, charge)[:40], 400, "not in gzip format"},
		"twice":                   {"/v2/transactions", "gzip, gzip", gzipped(t, gzipped(t, charge)), 415, "gzip"},
		"another":                 {"/v2/transactions", "br", charge, 415, "gzip"},
		"another, for the plane":  {"/__mock/endpoints", "deflate", endpoint, 415, "gzip"},
		"a long name":             {"/v2/transactions", strings.Repeat("x", 2000), charge, 415, "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gw := mockserver.Run(t)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, in.path, strings.NewReader(in.body))
			r.Header.Set("Apikey", gw.Key())
			r.Header.Set("Content-Type", "application/json")
			if in.encoding != "" {
				r.Header.Set("Content-Encoding", in.encoding)
			}
			w := httptest.NewRecorder()
			gw.Handler().ServeHTTP(w, r)
			require.Equal(t, in.status, w.Code, w.Body)
			assert.Contains(t, w.Body.String(), in.detail)
			assert.Less(t, w.Body.Len(), 4096)
			assert.Equal(t, in.encoding, r.Header.Get("Content-Encoding"), "the client's header is unchanged")
			want := ""
			if in.status == http.StatusUnsupportedMediaType {
				want = "gzip"
			}
			assert.Equal(t, want, w.Header().Get("Accept-Encoding"))
			for _, request := range gw.Requests.All() {
				assert.NotContains(t, request.Body, "12345678909")
				if in.status == http.StatusCreated {
					assert.Contains(t, request.Body, `"amount":1990`, "the journal has what was sent")
				}
			}
		})
	}
}
