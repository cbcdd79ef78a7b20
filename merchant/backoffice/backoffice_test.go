package backoffice_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/upload"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/merchant/backoffice"
	"github.com/gateway-go/gateway/webhook"
)

func actor(*http.Request) (string, bool) { return "Rui", true }

// send posts a form that is never carried out, because its account does not exist: the
// status is 404 if the request was let through.
func send(t *testing.T, cfg backoffice.Config, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	pages, err := backoffice.New(none{}, cfg)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "http://shop.test/admin/month", strings.NewReader("account=none"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	maps.Copy(r.Header, header)
	out := httptest.NewRecorder()
	pages.ServeHTTP(out, r)
	return out
}

func TestNewNeedsAMerchant(t *testing.T) {
	t.Parallel()
	_, err := backoffice.New(nil, backoffice.Config{})
	assert.ErrorContains(t, err, "the merchant is nil")
}

func TestAFormOfAnotherSiteIsRejected(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]http.Header{
		"of another site":                      {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"http://evil.test"}},
		"of another site, as if from here":     {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"http://shop.test"}},
		"of another subdomain":                 {"Sec-Fetch-Site": {"same-site"}, "Origin": {"http://blog.shop.test"}},
		"with an unknown value":                {"Sec-Fetch-Site": {"perhaps"}, "Origin": {"http://shop.test"}},
		"of an old browser":                    {"Origin": {"http://evil.test"}},
		"of an old browser, similar name":      {"Origin": {"http://shop.test.evil.test"}},
		"of an old browser, other port":        {"Origin": {"http://shop.test:8080"}},
		"of an old browser, from a frame":      {"Origin": {"null"}},
		"of an old browser, a broken origin":   {"Origin": {"shop.test"}},
		"that does not say from where it came": {},
		"as JSON that a form can send":         {"Sec-Fetch-Site": {"cross-site"}, "Content-Type": {"text/plain"}},
		"with a file":                          {"Sec-Fetch-Site": {"cross-site"}, "Content-Type": {"multipart/form-data; boundary=x"}},
		"with another method in a header":      {"Sec-Fetch-Site": {"cross-site"}, "X-Http-Method-Override": {"GET"}},
	} {
		out := send(t, backoffice.Config{Actor: actor}, header)
		assert.Equal(t, http.StatusForbidden, out.Code, name)
		assert.Contains(t, out.Body.String(), "did not come from this page", name)
	}
	for name, header := range map[string]http.Header{
		"a browser":     {"Sec-Fetch-Site": {"same-origin"}, "Origin": {"http://shop.test"}},
		"behind TLS":    {"Sec-Fetch-Site": {"same-origin"}, "Origin": {"https://shop.test"}},
		"an old one":    {"Origin": {"http://shop.test"}},
		"an old, proxy": {"Origin": {"https://shop.test"}},
	} {
		assert.Equal(t, http.StatusNotFound, send(t, backoffice.Config{Actor: actor}, header).Code, name)
	}
}

func TestNothingIsAllowedByDefault(t *testing.T) {
	t.Parallel()
	same := http.Header{"Sec-Fetch-Site": {"same-origin"}}
	for name, cfg := range map[string]backoffice.Config{
		"no actor":        {},
		"not allowed":     {Actor: func(*http.Request) (string, bool) { return "Rui", false }},
		"without a name":  {Actor: func(*http.Request) (string, bool) { return "", true }},
		"with a blank":    {Actor: func(*http.Request) (string, bool) { return " ", true }},
		"neither":         {Actor: func(*http.Request) (string, bool) { return "", false }},
		"with only title": {Title: "Shop"},
	} {
		out := send(t, cfg, same)
		assert.Equal(t, http.StatusForbidden, out.Code, name)
		assert.Contains(t, out.Body.String(), "Nothing was changed", name)
	}
}

// none is a merchant without accounts.
type none struct{ empty }

func (none) Accounts() []string                  { return nil }
func (none) Zone(string) (*time.Location, error) { return nil, merchant.ErrAccount }

// empty is a merchant that has nothing.
type empty struct{}

func (empty) Accounts() []string                                         { return []string{"shop"} }
func (empty) Zone(string) (*time.Location, error)                        { return time.UTC, nil }
func (empty) Health(context.Context) (h merchant.Health, err error)      { return h, merchant.ErrNotFound }
func (empty) Find(context.Context, string) ([]merchant.Hit, error)       { return nil, nil }
func (empty) Problems(context.Context) ([]*merchant.Problem, error)      { return nil, nil }
func (empty) Resolve(context.Context, string, merchant.Resolution) error { return merchant.ErrNotFound }

func (empty) Record(context.Context, string, string, string) (*merchant.Record, error) {
	return nil, merchant.ErrNotFound
}

func (empty) Problem(context.Context, string) (*merchant.Problem, error) {
	return nil, merchant.ErrNotFound
}

func (empty) DeadLetters(context.Context, string, webhook.DeadLetterQuery) ([]merchant.DeadLetter, error) {
	return nil, nil
}

func (empty) Unknown(context.Context, merchant.UnknownQuery) ([]merchant.UnknownResource, error) {
	return nil, nil
}

func (empty) Month(context.Context, string, string) (*merchant.Statement, error) {
	return nil, merchant.ErrNotFound
}

func (empty) CheckMonth(context.Context, string, string) (*merchant.Statement, []merchant.Difference, error) {
	return nil, nil, merchant.ErrNotFound
}

func (empty) Export(context.Context, io.Writer, string, string, merchant.Format) error {
	return merchant.ErrNotFound
}

// A page never reads a file, whoever sends it: net/http would write it to the disk.
// skipping is a merchant whose processes lacked a callback.
type skipping struct{ empty }

func (skipping) Health(context.Context) (merchant.Health, error) {
	return merchant.Health{Skipped: map[string]int{"refunded": 1234}}, nil
}

// Facts that were given up are nowhere else.
func TestTheOverviewShowsWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	page, err := backoffice.New(skipping{}, backoffice.Config{})
	require.NoError(t, err)
	out := httptest.NewRecorder()
	page.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	assert.Equal(t, http.StatusOK, out.Code)
	assert.Regexp(t, `no process had <code>refunded</code></dt><dd>1.{1,8}234 in 7 days`, out.Body.String())
}

func TestNoPageReadsAFile(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]backoffice.Config{
		"a viewer":   {},
		"an actor":   {Actor: actor},
		"in a query": {Actor: func(r *http.Request) (string, bool) { return r.FormValue("who"), true }},
	} {
		pages, err := backoffice.New(empty{}, cfg)
		require.NoError(t, err)
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
			for _, page := range []string{
				"", "find", "order", "charge", "refund", "payout", "subscription", "problems", "problem", "dead-letters", "month", "export", "style.css", "none",
			} {
				r, file, err := upload.Request(t.Context(), method, "http://shop.test/admin/"+page+"?who=Rui&account=shop")
				require.NoError(t, err)
				pages.ServeHTTP(httptest.NewRecorder(), r)
				assert.LessOrEqual(t, file.Read, int64(128<<10), "%s: %s %s", name, method, page)
				assert.Nil(t, r.MultipartForm, "%s: %s %s", name, method, page)
			}
		}
	}
}

func TestAFormIsNotTooLong(t *testing.T) {
	t.Parallel()
	pages, err := backoffice.New(none{}, backoffice.Config{Actor: actor})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "http://shop.test/month", strings.NewReader("why="+strings.Repeat("x", 1<<20)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	out := httptest.NewRecorder()
	pages.ServeHTTP(out, r)
	assert.Equal(t, http.StatusBadRequest, out.Code)
}
