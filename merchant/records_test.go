package merchant_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
)

// paid is a charge as the test of a shop makes it.
func paid(id string) *merchant.Charge {
	return &merchant.Charge{ID: id, State: merchant.Paid, Currency: gateway.BRL, Requested: 5000, Amount: 5000, Paid: 5000}
}

func pending(id string) *merchant.Charge {
	return &merchant.Charge{ID: id, State: merchant.Pending, Requested: 5000, PixCode: "00020126pix"}
}

// records call every exported method of a record on a value that was made by hand, with what it
// must return. The zero value is called too, and returns the zero value of each result but those
// of zeros.
func records() map[string][]struct {
	is   any
	want any
} {
	type cases = []struct {
		is   any
		want any
	}
	current := func(o *merchant.Order) string {
		if c := o.Current(); c != nil {
			return c.ID
		}
		return ""
	}
	settled := merchant.Order{Settled: true, Paid: 12000, Refunded: 500, Fee: 100, PaidOut: 1000, Adjusted: -50, Price: 5000}
	return map[string]cases{
		"Charge.Left": {
			{paid("1").Left(), int64(5000)},
			{(&merchant.Charge{Paid: 5000, Refunded: 2000, Disputed: 1000}).Left(), int64(2000)},
		},
		"Charge.QR": {
			{strings.HasPrefix(string(pending("1").QR()), "<svg"), true},
			{string((&merchant.Charge{PixCode: strings.Repeat("x", 9999)}).QR()), ""}, // the buyer copies it
		},
		"Order.Left": {{settled.Left(), int64(11500)}},
		"Order.Net":  {{settled.Net(), int64(10350)}},
		"Order.Excess": {
			{settled.Excess(), int64(6500)},
			{(&merchant.Order{Settled: true, Paid: 5000, Price: 5000}).Excess(), int64(0)},
			{(&merchant.Order{Settled: true, Paid: 5400, Price: 5000, Interest: 400}).Excess(), int64(0)},
			{(&merchant.Order{Settled: true, Paid: 5000, Refunded: 5000, Price: 5000}).Excess(), int64(0)},
			{(&merchant.Order{Settled: true, Paid: 5000}).Excess(), int64(0)}, // the price is not known
			{(&merchant.Order{Paid: 5000}).Excess(), int64(0)},
			{(&merchant.Order{Settled: true, Currency: gateway.BRL, Paid: 700, Price: 50, PriceCurrency: "USD"}).Excess(), int64(700)},
		},
		"Order.Current": {
			{current(&merchant.Order{Paid: 5000, Settled: true, Charges: []*merchant.Charge{paid("1")}}), "1"},
			{current(&merchant.Order{Paid: 5000, Charges: []*merchant.Charge{paid("1")}}), "1"},
			{current(&merchant.Order{Settled: true, SettledBy: "1", Charges: []*merchant.Charge{paid("1"), pending("2"), paid("3")}}), "1"},
			{current(&merchant.Order{Settled: true, Charges: []*merchant.Charge{pending("1"), paid("2")}}), "2"},
			{current(&merchant.Order{Settled: true, Charges: []*merchant.Charge{{ID: "1", State: merchant.Refunded}}}), "1"},
			{current(&merchant.Order{Charges: []*merchant.Charge{pending("1"), pending("2")}}), "2"},
			{current(&merchant.Order{Latest: "1", Charges: []*merchant.Charge{pending("1"), pending("2")}}), "1"},
			{current(&merchant.Order{Latest: "3", Charges: []*merchant.Charge{pending("1"), pending("2"), {ID: "3", State: merchant.Failed}}}), "2"},
			{current(&merchant.Order{Charges: []*merchant.Charge{paid("1"), pending("2")}}), "2"}, // it wants more
			{current(&merchant.Order{Charges: []*merchant.Charge{{ID: "1", State: merchant.Failed}}}), ""},
			{current(&merchant.Order{Closed: true, Charges: []*merchant.Charge{paid("1")}}), ""},
			{current(&merchant.Order{Charges: []*merchant.Charge{{Order: "A1"}}}), ""},
		},
		"Subscription.QR": {{strings.HasPrefix(string((&merchant.Subscription{AuthorizationCode: "00020126pix"}).QR()), "<svg"), true}},
		"Problem.Decisions": {
			{(&merchant.Problem{}).Decisions(), []merchant.Decision{merchant.Dismiss}},
			{slices.Contains((&merchant.Problem{Kind: merchant.ProblemAmbiguous}).Decisions(), merchant.SendAgain), true},
		},
	}
}

// zeros are the results of zero values that are no zero values themselves.
var zeros = map[string]any{"Problem.Decisions": []merchant.Decision{merchant.Dismiss}}

// values are the zero values of all records with methods.
var values = map[string]any{
	"Charge": new(merchant.Charge), "Order": new(merchant.Order), "Subscription": new(merchant.Subscription), "Problem": new(merchant.Problem),
}

// A shop's tests make records by hand: every method of one returns what its exported members say.
func TestEveryMethodOfARecordThatIsMadeByHand(t *testing.T) {
	t.Parallel()
	tested := records()
	assert.ElementsMatch(t, declared(t), keysOf(tested), "the methods of records, in the source and in this test")
	for name, cases := range tested {
		for i, c := range cases {
			assert.Equal(t, c.want, c.is, "%s, case %d", name, i)
		}
		record, method, _ := strings.Cut(name, ".")
		require.Contains(t, values, record)
		for _, got := range reflect.ValueOf(values[record]).MethodByName(method).Call(nil) {
			if want, other := zeros[name]; other {
				assert.Equal(t, want, got.Interface(), name)
			} else {
				assert.True(t, got.IsZero(), "%s of the zero value returns %v", name, got)
			}
		}
	}
}

func keysOf[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// declared returns the exported methods of all exported types but Merchant and Reports.
func declared(t *testing.T) (names []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			fn, is := d.(*ast.FuncDecl)
			if !is || fn.Recv == nil || !fn.Name.IsExported() {
				continue
			}
			typ := fn.Recv.List[0].Type
			if star, is := typ.(*ast.StarExpr); is {
				typ = star.X
			}
			if of, is := typ.(*ast.Ident); is && of.IsExported() && of.Name != "Reports" {
				names = append(names, of.Name+"."+fn.Name.Name)
			}
		}
	}
	return names
}
