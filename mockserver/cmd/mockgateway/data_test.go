package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newServer(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func pix(ref string) string {
	return `{"external_ref":"` + ref + `","amount":1000,"method":"pix","buyer":{"name":"Ana","email":"ana@shop.test"},` +
		`"products":[{"name":"Book","price":1000}]}`
}

func (g *process) id(body map[string]any) string {
	data, _ := body["data"].(map[string]any)
	id, _ := data["id"].(string)
	assert.NotEmpty(g.t, id, body)
	return id
}

// must makes a request and fails the test if it is rejected.
func (g *process) must(method, path, body string) map[string]any {
	g.t.Helper()
	status, v, err := g.call(method, path, body)
	require.NoError(g.t, err)
	require.Less(g.t, status, 300, v)
	return v
}

// TestKilledBetweenRequests checks that everything acknowledged before a kill
// survives it.
func TestKilledBetweenRequests(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	args := []string{"-data", file, "-clock", "manual", "-start", "2027-01-04T12:00:00Z"}
	var mu sync.Mutex
	hooks := 0
	down := true
	hook := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		hooks++
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})

	g := start(t, args...)
	g.must("POST", "/__mock/endpoints", `{"url":"`+hook+`","secret":"whsec_s_0001","events":["transaction.paid"]}`)
	tx := g.id(g.must("POST", "/v2/transactions", pix("order-1")))
	g.must("POST", "/__mock/transactions/"+tx+"/pay", "")
	g.must("PUT", "/v2/transactions/"+tx+"/refund", `{"amount":400}`)
	customer := g.id(g.must("POST", "/v2/customers", `{"name":"Ana","email":"ana@shop.test"}`))
	sub := g.id(g.must("POST", "/v2/subscriptions", `{"customer_id":"`+customer+`","amount":500,"interval":"month","token":"pgct_ok"}`))
	expiring := g.id(g.must("POST", "/v2/transactions", pix("order-2")))
	g.must("POST", "/__mock/clock/advance", `{"by":"1h"}`)
	before := g.must("GET", "/v2/transactions/"+tx, "")["data"]
	g.kill()

	for range 3 { // a compacted file works as well
		g = start(t, args...)
		assert.Equal(t, before, g.must("GET", "/v2/transactions/"+tx, "")["data"])
		assert.Equal(t, map[string]any{"now": "2027-01-04T13:00:00.000Z"}, g.must("GET", "/__mock/clock", "")["data"])
		assert.Len(t, g.must("GET", "/__mock/endpoints", "")["data"], 1)
		status, _, err := g.call("POST", "/v2/transactions", pix("order-1"))
		require.NoError(t, err)
		assert.Equal(t, http.StatusConflict, status, "the reference is still taken")
		status, _, err = g.call("POST", "/v2/subscriptions", `{"customer_id":"`+customer+`","amount":500,"interval":"month","token":"pgct_ok"}`)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, status, "the token is still used up")
		g.kill()
	}

	g = start(t, args...)
	mu.Lock()
	down = false
	mu.Unlock()
	g.must("POST", "/__mock/clock/advance", `{"by":"960h"}`)
	data, _ := g.must("GET", "/v2/transactions/"+expiring, "")["data"].(map[string]any)
	assert.Equal(t, "expired", data["status"], "timers continue")
	data, _ = g.must("GET", "/v2/subscriptions/"+sub, "")["data"].(map[string]any)
	assert.Equal(t, "2027-03-04T12:00:00.000Z", data["currentPeriodEnd"], "renewed once")
	list, _ := g.must("GET", "/__mock/deliveries?resource_id="+tx+"&kind=transaction.paid", "")["data"].([]any)
	require.Len(t, list, 1)
	delivery, _ := list[0].(map[string]any)
	assert.Equal(t, "delivered", delivery["status"], "a delivery that failed before the kill is retried after it")
	assert.NotEmpty(t, delivery["body"])
}

// TestKilledDuringRequests kills the gateway again and again while clients
// create transactions: none that was acknowledged is lost, none is duplicated,
// and each has its events.
func TestKilledDuringRequests(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	var mu sync.Mutex
	acknowledged := map[string]string{} // reference to id
	for round := range 5 {
		g := start(t, "-data", file, "-log", "off")
		var clients sync.WaitGroup
		enough := make(chan struct{})
		end := sync.OnceFunc(func() { close(enough) })
		for c := range 4 {
			clients.Go(func() {
				for i := 0; ; i++ {
					ref := fmt.Sprintf("%d-%d-%d", round, c, i)
					status, v, err := g.call("POST", "/v2/transactions", pix(ref))
					if err != nil {
						return // killed
					}
					if status == http.StatusCreated {
						mu.Lock()
						acknowledged[ref] = g.id(v)
						mu.Unlock()
						if i == 10*(round+1) {
							end()
						}
					}
				}
			})
		}
		<-enough
		g.kill()
		clients.Wait()
	}
	g := start(t, "-data", file, "-log", "off")
	assert.NotEmpty(t, acknowledged)
	for ref, id := range acknowledged {
		data, _ := g.must("GET", "/v2/transactions/"+id, "")["data"].(map[string]any)
		assert.Equal(t, ref, data["external_ref"])
	}
	data, _ := g.must("GET", "/v2/transactions?limit=1", "")["data"].(map[string]any)
	total, _ := data["total"].(float64)
	assert.GreaterOrEqual(t, int(total), len(acknowledged))
	assert.LessOrEqual(t, int(total), len(acknowledged)+5*4, "plus at most the requests in flight")
	events := map[string]bool{}
	list, _ := g.must("GET", "/__mock/deliveries", "")["data"].([]any)
	for _, d := range list {
		delivery, _ := d.(map[string]any)
		events[fmt.Sprint(delivery["resource_id"], delivery["kind"])] = true
	}
	assert.Len(t, list, 2*int(total), "created and pending")
	assert.Len(t, events, 2*int(total))
}

// TestKilledWhileTheFileIsCompacted kills the gateway at any point of a
// compaction after the new file exists.
func TestKilledWhileTheFileIsCompacted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	var mu sync.Mutex
	acknowledged := map[string]string{} // reference to id
	killed := 0
	for round := range 5 {
		g := start(t, "-data", file, "-log", "off")
		var clients sync.WaitGroup
		for c := range 4 {
			clients.Go(func() {
				for i := range 2000 {
					ref := fmt.Sprintf("%d-%d-%d", round, c, i)
					status, v, err := g.call("POST", "/v2/transactions",
						strings.Replace(pix(ref), `{`, `{"metadata":"`+strings.Repeat("m", 4000)+`",`, 1))
					if err != nil {
						return // killed
					}
					if status == http.StatusCreated {
						mu.Lock()
						acknowledged[ref] = g.id(v)
						mu.Unlock()
					}
					if _, err := os.Stat(file + ".new"); err == nil {
						g.kill()
					}
				}
			})
		}
		clients.Wait()
		if _, err := os.Stat(file + ".new"); err == nil {
			killed++
		}
		g.kill()
	}
	assert.NotZero(t, killed, "no compaction was under way")
	g := start(t, "-data", file, "-log", "off")
	for ref, id := range acknowledged {
		data, _ := g.must("GET", "/v2/transactions/"+id, "")["data"].(map[string]any)
		assert.Equal(t, ref, data["external_ref"])
	}
	data, _ := g.must("GET", "/v2/transactions?limit=1", "")["data"].(map[string]any)
	total, _ := data["total"].(float64)
	assert.GreaterOrEqual(t, int(total), len(acknowledged))
	assert.LessOrEqual(t, int(total), len(acknowledged)+5*4, "plus at most the requests in flight")
	events := map[string]bool{}
	list, _ := g.must("GET", "/__mock/deliveries", "")["data"].([]any)
	for _, d := range list {
		delivery, _ := d.(map[string]any)
		events[fmt.Sprint(delivery["resource_id"], delivery["kind"])] = true
	}
	assert.Len(t, list, 2*int(total), "created and pending")
	assert.Len(t, events, 2*int(total))
}

func TestRejectedFilesAreNotChanged(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "good")
	g := start(t, "-data", good)
	g.must("POST", "/v2/transactions", pix("order-1"))
	g.must("POST", "/v2/transactions", pix("order-2"))
	g.kill()
	content, err := os.ReadFile(good)
	require.NoError(t, err)
	flip := func(i int) []byte {
		b := bytes.Clone(content)
		b[i] ^= 1
		return b
	}
	for name, tc := range map[string]struct {
		content []byte
		args    []string
		want    string
	}{
		"foreign":             {[]byte("# my notes\n"), nil, "not a data file"},
		"binary":              {[]byte{0x7f, 'E', 'L', 'F'}, nil, "not a data file"},
		"damaged head":        {flip(3), nil, "not a data file"},
		"damaged length":      {flip(26), nil, "damaged"},
		"damaged record":      {flip(60), nil, "damaged"},
		"damaged last record": {flip(len(content) - 2), nil, "damaged"},
		"other dialect":       {content, []string{"-dialect", "live"}, "its dialect is document, and this gateway's is live"},
		"other environment":   {content, []string{"-environment", "production"}, "its environment is sandbox, and this gateway's is production"},
	} {
		file := filepath.Join(t.TempDir(), "data")
		require.NoError(t, os.WriteFile(file, tc.content, 0o600))
		_, err := tryStart(t, append([]string{"-data", file}, tc.args...)...)
		require.ErrorContains(t, err, tc.want, name)
		assert.Contains(t, err.Error(), file, name)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, tc.content, after, name)
	}

	torn := filepath.Join(t.TempDir(), "torn")
	require.NoError(t, os.WriteFile(torn, content[:len(content)-1], 0o600))
	g = start(t, "-data", torn)
	_, err = tryStart(t, "-data", torn)
	require.ErrorContains(t, err, "in use by another process")
	data, _ := g.must("GET", "/v2/transactions", "")["data"].(map[string]any)
	assert.EqualValues(t, 1, data["total"], "the torn record is dropped, the one before is not")
	_, err = tryStart(t, "-data", t.TempDir())
	require.Error(t, err)
}

// The data of a seed file survives a restart, which does not apply the file
// again.
func TestASeedFileFillsAnEmptyDataFile(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	args := []string{"-data", data, "-seed-file", "../../../docs/shop.seed.json", "-start", "2027-01-04T12:00:00Z", "-clock", "manual"}
	g := start(t, args...)
	ids, _ := g.must("GET", "/__mock/seed", "")["data"].(map[string]any)
	id, _ := ids["waiting"].(string)
	g.must("POST", "/__mock/transactions/"+id+"/pay", "")
	g.kill()
	assert.NotContains(t, g.errs.String(), "not applied")

	g = start(t, args...)
	tx, _ := g.must("GET", "/v2/transactions/"+id, "")["data"].(map[string]any)
	assert.Equal(t, "paid", tx["status"])
	assert.Empty(t, g.must("GET", "/__mock/seed", "")["data"])
	g.kill()
	assert.Contains(t, g.errs.String(), "mockgateway: ../../../docs/shop.seed.json was not applied: the data file has resources already\n")

	broken := filepath.Join(t.TempDir(), "shop.json")
	require.NoError(t, os.WriteFile(broken, []byte("{\n \"customers\": [{\"name\": \"Ana\"}]\n}"), 0o600))
	_, err := tryStart(t, "-seed-file", broken)
	require.ErrorContains(t, err, "shop.json:2:16: customers[0].email: ")
	_, err = tryStart(t, "-seed-file", broken+"x")
	require.ErrorContains(t, err, "no such file")
}
