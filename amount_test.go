package gateway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// settledAt is transactionJSON of a charge of 15990 whose amount the gateway
// reports as 3815, with the members that have the requested amount.
func settledAt(id, reference, members string) string {
	return strings.Replace(transactionJSON(id, reference, 3815), `"amount":3815`, `"amount":3815,`+members, 1)
}

// TestSettledAmount: a live gateway may report in amount what it settles. The
// create was still applied with the requested amount.
func TestSettledAmount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSettledAmount)
}

func testSettledAmount(t *testing.T) {
	for members, same := range map[string]bool{
		`"base_price":15990`:                      true,
		`"paid_amount":15990`:                     true,
		`"base_price":0,"paid_amount":15990`:      true,
		`"base_price":15990,"paid_amount":15990`:  true,
		`"base_price":4000,"paid_amount":0`:       false,
		`"base_price":null`:                       false,
		`"base_price":15991,"paid_amount":159900`: false,
	} {
		created := reply(201, `{"success":true,"requestId":"r-1","data":`+settledAt(orderID, "order-1001", members)+`}`)
		read := reply(200, `{"success":true,"requestId":"r-1","data":`+settledAt(orderID, "order-1001", members)+`}`)
		for name, s := range map[string]*fakeTransport{
			"returned by the create": play(created),
			"after a lost create":    play(fail(errReset), reply(409, duplicate("/v2/transactions/"+orderID)), read),
		} {
			order := pixOrder()
			order.ExternalRef = "order-1001"
			got, err := clientOf(t, s).Transactions.Create(t.Context(), order)
			if !same {
				require.Error(t, err, "%s, %s", name, members)
				continue
			}
			require.NoError(t, err, "%s, %s", name, members)
			assert.True(t, got.AmountIs(15990), "%s, %s", name, members)
			assert.Equal(t, int64(15990), got.Charged(), "%s, %s", name, members)
		}
	}
}

func TestCharged(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		amount, basePrice, paid int64
		charged                 int64
		is                      []int64
	}{
		{amount: 500, charged: 500, is: []int64{500}},
		{amount: 475, basePrice: 500, charged: 500, is: []int64{475, 500}},
		{amount: 475, basePrice: 500, paid: 500, charged: 500, is: []int64{475, 500}},
		{amount: 475, paid: 500, charged: 500, is: []int64{475, 500}},
		{amount: 500, basePrice: 500, paid: 200, charged: 200, is: []int64{200, 500}}, // partially paid
		{basePrice: 500, charged: 500, is: []int64{500}},
		{},
	} {
		tx := gateway.Transaction{Amount: row.amount, BasePrice: row.basePrice, PaidAmount: row.paid}
		item := gateway.Transaction{Amount: row.amount, BasePrice: row.basePrice, PaidAmount: row.paid}
		assert.Equal(t, row.charged, tx.Charged(), "%+v", row)
		assert.Equal(t, row.charged, item.Charged(), "%+v", row)
		for _, cents := range []int64{-1, 0, 200, 475, 500, 501} {
			is := false
			for _, a := range row.is {
				is = is || a == cents
			}
			assert.Equal(t, is, tx.AmountIs(cents), "%+v, %d", row, cents)
			assert.Equal(t, is, item.AmountIs(cents), "%+v, %d", row, cents)
		}
	}
}

func TestPaid(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status gateway.TransactionStatus
		paid   int64 // without a paid_amount
	}{
		{gateway.TransactionPending, 0},
		{gateway.TransactionWaitingPayment, 0},
		{gateway.TransactionProcessing, 0},
		{gateway.TransactionProcessed, 0},
		{gateway.TransactionAuthorized, 0},
		{gateway.TransactionThreeDSRequired, 0},
		{gateway.TransactionRefused, 0},
		{gateway.TransactionCanceled, 0},
		{gateway.TransactionExpired, 0},
		{gateway.TransactionPartiallyPaid, 0},
		{"brand_new", 0},
		{gateway.TransactionPaid, 500},
		{gateway.TransactionCaptured, 500},
		{gateway.TransactionPartiallyRefunded, 500},
		{gateway.TransactionRefunded, 500},
		{gateway.TransactionMED, 500},
		{gateway.TransactionInProtest, 500},
		{gateway.TransactionPreChargedback, 500},
		{gateway.TransactionChargedback, 500},
	} {
		tx := gateway.Transaction{Status: row.status, Amount: 475, BasePrice: 500}
		item := gateway.SubscriptionTransaction{Status: row.status, Amount: 500}
		assert.Equal(t, []int64{row.paid, row.paid}, []int64{tx.Paid(), item.Paid()}, row.status)
		assert.Equal(t, []int64{500, 500}, []int64{tx.Charged(), item.Charged()}, row.status)
		tx.PaidAmount, item.PaidAmount = 200, 200
		assert.Equal(t, []int64{200, 200, 200, 200}, []int64{tx.Paid(), item.Paid(), tx.Charged(), item.Charged()}, row.status)
	}
}

// readPaidAmount has the files that read the field PaidAmount, which a gateway may omit.
// Everything else uses Paid, Charged or AmountIs.
var readPaidAmount = map[string]string{
	"amount.go":                               "defines Paid, Charged and AmountIs",
	"transactions.go":                         "whether a created transaction has an amount at all",
	"webhook/confirm.go":                      "compares all amounts of an event with those of the API, and copies the member",
	"webhook/data.go":                         "defines Charged and AmountIs of an event",
	"merchant/internal/books/charge.go":       "says that what was paid is assumed, and what contradicts the status",
	"merchant/internal/books/compare.go":      "whether a list reports what was paid",
	"merchant/internal/books/subscription.go": "whether a list reports more than is booked",
}

// TestOnlyAFewFilesReadThePaidAmount searches all modules. Tests, and the mock gateway's
// own records, have a paid amount always.
func TestOnlyAFewFilesReadThePaidAmount(t *testing.T) {
	t.Parallel()
	found := make(map[string]bool)
	parsed := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || name == "mockserver/internal" || len(name) > 1 && d.Name()[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parsed++
		if !strings.Contains(string(text), "PaidAmount") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "PaidAmount" {
				found[name] = true
			}
			return true
		})
		return nil
	}))
	assert.Greater(t, parsed, 300, "the whole repository")
	assert.Equal(t, slices.Sorted(maps.Keys(readPaidAmount)), slices.Sorted(maps.Keys(found)),
		"a gateway may omit paid_amount: use Transaction.Paid, or Charged, or say in readPaidAmount why not")
}
