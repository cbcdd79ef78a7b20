package docs_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// guideFaults returns the faults of the table in testing.md by the text of their cell.
func guideFaults() map[string]mockserver.Fault {
	return map[string]mockserver.Fault{
		"Latency(800 * time.Millisecond)":                  mockserver.Latency(800 * time.Millisecond),
		"Latency(time.Minute)":                             mockserver.Latency(time.Minute),
		"Status(429).RetryAfter(2 * time.Second)":          mockserver.Status(429).RetryAfter(2 * time.Second),
		"Status(503)":                                      mockserver.Status(503),
		"Status(500).CodedBody()":                          mockserver.Status(500).CodedBody(),
		`Status(422).TitledBody().Code("PAYMENT_BLOCKED")`: mockserver.Status(422).TitledBody().Code("PAYMENT_BLOCKED"),
		`Status(409).Code("INSUFFICIENT_FUNDS")`:           mockserver.Status(409).Code("INSUFFICIENT_FUNDS"),
		"Status(500).NoBody()":                             mockserver.Status(500).NoBody(),
		"Status(500).Applied()":                            mockserver.Status(500).Applied(),
		"Status(403)":                                      mockserver.Status(403),
		"ResetBefore()":                                    mockserver.ResetBefore(),
		"LoseResponse()":                                   mockserver.LoseResponse(),
		"Truncate()":                                       mockserver.Truncate(),
		"EmptyBody()":                                      mockserver.EmptyBody(),
		"BadJSON()":                                        mockserver.BadJSON(),
		"HTMLPage()":                                       mockserver.HTMLPage(),
		"HTMLPage().Applied()":                             mockserver.HTMLPage().Applied(),
		"HangUntilTimeout()":                               mockserver.HangUntilTimeout(),
		"HangUntilTimeout().Applied()":                     mockserver.HangUntilTimeout().Applied(),
		"UnknownEnum()":                                    mockserver.UnknownEnum(),
		"ExtraField()":                                     mockserver.ExtraField(),
		"StaleRead()":                                      mockserver.StaleRead(),
		"Lag(2 * time.Minute)":                             mockserver.Lag(2 * time.Minute),
		`Shape("masked")`:                                  mockserver.Shape("masked"),
	}
}

// Each row of the fault table in testing.md describes what the mock and the client do.
func TestFaultTable(t *testing.T) {
	t.Parallel()
	rows := tableRows(t, "testing.md", "| fault | `X-Mock-Fault` |")
	faults := guideFaults()
	assert.Len(t, rows, len(faults))
	for _, row := range rows {
		fault, found := faults[names(row[0])[0]]
		require.True(t, found, "%s: add it to guideFaults", row[0])
		assert.Equal(t, fault.String(), names(row[1])[0])
		synctest.Test(t, func(t *testing.T) {
			assert.Equal(t, [3]string(row[3:6]), outcomes(t, fault), row[0])
		})
	}
}

// The table of error codes in mockgateway.md has every code of the engine, and
// none that the mock does not return.
func TestErrorCodeTable(t *testing.T) {
	t.Parallel()
	const internal = "../mockserver/internal/"
	var listed []string
	for _, row := range tableRows(t, "mockgateway.md", "| code | status | when |") {
		listed = append(listed, names(row[0])[0])
	}
	var sources []byte
	for _, dir := range []string{"engine", "httpapi"} {
		files, err := filepath.Glob(internal + dir + "/*.go")
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if !strings.HasSuffix(file, "_test.go") {
				sources = append(sources, text...)
			}
		}
	}
	for _, code := range listed {
		assert.Contains(t, string(sources), `"`+code+`"`)
	}
	text, err := os.ReadFile(internal + "engine/refusals.go")
	require.NoError(t, err)
	codes := regexp.MustCompile(`Code\w+ += "(\w+)"`).FindAllSubmatch(text, -1)
	assert.Greater(t, len(codes), 10)
	for _, code := range codes {
		assert.Contains(t, listed, string(code[1]))
	}
}

// The table has a row for every fault for requests. The mock lists their names when it
// rejects an unknown one.
func TestFaultTableIsComplete(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	_, err := gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{}, gateway.Header("X-Mock-Fault", "none"))
	require.ErrorIs(t, err, gateway.ErrValidation)
	_, list, found := strings.Cut(err.Error(), "use one of ")
	require.True(t, found, err.Error())
	var shown []string
	for _, row := range tableRows(t, "testing.md", "| fault | `X-Mock-Fault` |") {
		shown = append(shown, regexp.MustCompile(`^[a-z-]+`).FindString(names(row[1])[0]))
	}
	known := regexp.MustCompile(`[a-z]+(-[a-z]+)*`).FindAllString(list, -1)
	require.Greater(t, len(known), 12)
	for _, name := range known[:slices.Index(known, "drop-webhook")] {
		assert.Contains(t, shown, name)
	}
}

// outcomes returns what the client does, in the guide's words, when a fault hits one
// attempt of a create, a read and a refund.
func outcomes(t *testing.T, fault mockserver.Fault) [3]string {
	t.Helper()
	gw := mockserver.Run(t)
	client := gw.Client()
	hit := func(op string) { require.NoError(t, gw.Faults.Add(fault.On(op).Times(1))) }
	var response gateway.Response
	into := gateway.ResponseInto(&response)

	hit("transactions.create")
	params := gateway.TransactionParams{
		ExternalRef: "order-17", Amount: 4990, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
	}
	_, err := client.Transactions.Create(t.Context(), params, into)
	create := outcomeWord(err, response)

	params.ExternalRef = "order-18"
	created, err := client.Transactions.Create(t.Context(), params)
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(created.ID))
	hit("transactions.get")
	tx, err := client.Transactions.Get(t.Context(), created.ID, into)
	read := outcomeWord(err, response)
	if err == nil && tx.Status == gateway.TransactionPending {
		read = "stale"
	}
	hit("transactions.refund")
	_, err = client.Transactions.Refund(t.Context(), created.ID, gateway.RefundParams{Full: true}, into)
	return [3]string{create, read, outcomeWord(err, response)}
}

func outcomeWord(err error, response gateway.Response) string {
	switch {
	case errors.Is(err, gateway.ErrOutcomeUnknown):
		return "unknown"
	case err != nil:
		return "an error"
	case response.Recovered:
		return "recovered"
	case response.Attempts > 1:
		return "retried"
	default:
		return "unaffected"
	}
}

// The table of controls in testing.md names every method.
func TestControlTableIsComplete(t *testing.T) {
	t.Parallel()
	shown := map[string][]string{}
	for _, row := range tableRows(t, "testing.md", "| field of the server or of an account |") {
		shown[names(row[0])[0]] = names(row[1])
	}
	account := reflect.TypeFor[mockserver.Account]()
	for name, methods := range shown {
		field, found := account.FieldByName(name)
		require.True(t, found, name)
		var have []string
		for m := range field.Type.Methods() {
			if m.Name != "Format" { // implements fmt.Formatter
				have = append(have, m.Name)
			}
		}
		assert.ElementsMatch(t, have, methods, name)
	}
	assert.Len(t, shown, 5)
}

// The test tokens behave as the table in testing.md says.
func TestTokenTable(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	charge := func(token string) (*gateway.Transaction, error) {
		return client.Transactions.Create(t.Context(), gateway.TransactionParams{
			Amount: 4990, Method: gateway.CreditCard, Token: gateway.CardToken(token),
			Buyer:    gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com"},
			Products: []gateway.Product{{Name: "Mug", Price: 4990}},
		})
	}
	for _, row := range tableRows(t, "testing.md", "| token | status of the charge |") {
		for _, token := range names(row[0]) {
			tx, err := charge(strings.TrimSuffix(token, "…"))
			if row[1] == "an error" {
				require.ErrorIs(t, err, gateway.ErrValidation, token)
				continue
			}
			require.NoError(t, err, token)
			assert.Equal(t, names(row[1])[0], string(tx.Status), token)
		}
	}
	for key, status := range map[string]int{"sk_test_revoked_1": http.StatusUnauthorized, "sk_test_forbidden_1": http.StatusForbidden} {
		_, err := gw.Account(key).Client().Transactions.List(t.Context(), gateway.TransactionListParams{})
		var e *gateway.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, status, e.StatusCode, key)
	}
}

// tableRows returns the rows of the table in a guide whose header row begins with head.
func tableRows(t *testing.T, guide, head string) [][]string {
	t.Helper()
	text, err := os.ReadFile(guide)
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n"+head)
	require.True(t, found, "%s has no table %s", guide, head)
	var rows [][]string
	for i, line := range strings.Split(table, "\n") {
		if i < 2 {
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for c := range cells {
			cells[c] = strings.TrimSpace(cells[c])
		}
		rows = append(rows, cells)
	}
	require.NotEmpty(t, rows, head)
	return rows
}

// The table of forms in testing.md has every form, and says of what.
func TestShapeTable(t *testing.T) {
	t.Parallel()
	var responses, webhooks []string
	for _, row := range tableRows(t, "testing.md", "| form | of | what changes |") {
		for _, name := range names(row[0]) {
			if row[1] != "webhooks" {
				responses = append(responses, name)
			}
			if row[1] != "responses" {
				webhooks = append(webhooks, name)
			}
		}
	}
	assert.ElementsMatch(t, mockserver.ShapeNames(), responses)
	assert.ElementsMatch(t, mockserver.WebhookShapeNames(), webhooks)
}
