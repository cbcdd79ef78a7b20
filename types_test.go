package gateway_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-querystring/query"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

func TestTimestampForms(t *testing.T) {
	t.Parallel()
	noon := time.Date(2027, 1, 4, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		`"2027-01-04T12:00:00.000Z"`:      noon,
		`"2027-01-04T12:00:00.5Z"`:        noon.Add(500 * time.Millisecond),
		`"2027-01-04T12:00:00.123456Z"`:   noon.Add(123456 * time.Microsecond),
		`"2027-01-04T12:00:00Z"`:          noon,
		`"2027-01-04T09:00:00-03:00"`:     noon,
		`"2027-01-04T12:00:00"`:           noon,
		`"2027-01-04 12:00:00"`:           noon,
		`"2027-01-04 09:00:00-03:00"`:     noon,
		`"2027-01-04T12:00Z"`:             noon,
		`"2027-01-04T09:00-03:00"`:        noon,
		`"2027-01-04T09:00-0300"`:         noon,
		`"2027-01-04 12:00"`:              noon,
		`"2027-01-04t12:00z"`:             noon,
		`"2027-01-04 12:00 UTC"`:          noon,
		`"2027-01-04"`:                    noon.Add(-12 * time.Hour),
		`"2027-01-04T12\u003a00:00.000Z"`: noon,
		`1799064000`:                      noon,
		`1799064000000`:                   noon,
		`1799064000000000`:                noon,
		`1799064000000000000`:             noon,
		`"1799064000000"`:                 noon,
		`"1799064000000000"`:              noon,
		`"1799064000000000000"`:           noon,
		`1799064000500.0`:                 noon.Add(500 * time.Millisecond),
		`1799064000500000.0`:              noon.Add(500 * time.Millisecond),
		`1.799064e9`:                      noon,
		`1.799064e12`:                     noon,
		`1.799064e15`:                     noon,
		`1e19`:                            {},
		`"NaN"`:                           {},
		`"Inf"`:                           {},
		`1799064000.5`:                    noon.Add(500 * time.Millisecond),
		`"1799064000"`:                    noon,
		`"2027-01-04T09:00:00-0300"`:      noon,
		`"2027-01-04T09:00:00.5-0300"`:    noon.Add(500 * time.Millisecond),
		`"2027-01-04T12:00:00+0000"`:      noon,
		`"2027-01-04T09:00:00-03"`:        noon,
		`"2027-01-04 09:00:00-03"`:        noon,
		`"2027-01-04 09:00:00 -0300"`:     noon,
		`"2027-01-04 09:00:00 -03:00"`:    noon,
		`"2027-01-04 12:00:00 UTC"`:       noon,
		`"2027-01-04T12:00:00.000 UTC"`:   noon,
		`"2027-01-04 12:00:00 GMT"`:       noon,
		`"2027-01-04t12:00:00z"`:          noon,
		`"2027-01-04T12:00:00z"`:          noon,
		`"2027-01-04t09:00:00-03:00"`:     noon,
		`" 2027-01-04T12:00:00Z "`:        noon,
		`"2027-01-04T09:00:00 BRT"`:       {},
		`"2027-01-04T12:00:0 0Z"`:         {},
		`"2027-02-31T12:00:00.000Z"`:      {},
		`"2027-13-01T12:00:00.000Z"`:      {},
		`"2027-01-04T24:00:00.000Z"`:      {},
		`"2027-01-04T12:60:00.000Z"`:      {},
		`"0001-01-01T00:00:00.000Z"`:      {},
		`"soon"`:                          {},
		`true`:                            {},
		`{"at":1}`:                        {},
		`null`:                            {},
		`""`:                              {},
	} {
		var ts gateway.Timestamp
		require.NoError(t, jsonv2.Unmarshal([]byte(text), &ts), text)
		assert.True(t, want.Equal(ts.Time), "%s is %s", text, ts.Time)
		assert.Equal(t, want.IsZero() && text != `null` && text != `""`, ts.Unreadable(), text)
		back, err := jsonv2.Marshal(ts)
		require.NoError(t, err)
		if text == `""` {
			text = `null`
		}
		assert.JSONEq(t, text, string(back), "the original text is encoded")
		std, err := json.Marshal(ts)
		require.NoError(t, err)
		assert.JSONEq(t, text, string(std))
	}
	back, err := jsonv2.Marshal(gateway.TimestampOf(noon.In(time.FixedZone("", 7200))))
	require.NoError(t, err)
	assert.Equal(t, `"2027-01-04T12:00:00.000Z"`, string(back))
}

// FuzzTimestamp checks that any JSON value decodes, and that the time survives
// encoding.
func FuzzTimestamp(f *testing.F) {
	for _, s := range []string{
		`"2027-01-04T12:00:00.000Z"`, `"2027-02-30T12:00:00.000Z"`, `1e300`, `-1`, `""`, `"2027-01-04t09:00:00-0300"`, `"2027-01-04 12:00:00 UTC"`, `1799064000000000`, `"NaN"`, `null`, `"9999-12-31T23:59:60.999Z"`, `[1]`, `"\u0000"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		var ts gateway.Timestamp
		require.NoError(t, json.Unmarshal(text, &ts))
		back, err := ts.MarshalJSON()
		require.NoError(t, err)
		require.True(t, json.Valid(back), "%q became %q", text, back)
		var again gateway.Timestamp
		require.NoError(t, again.UnmarshalJSON(back))
		assert.True(t, ts.Time.Equal(again.Time), "%q", text)
	})
}

func TestOpt(t *testing.T) {
	t.Parallel()
	type params struct {
		N gateway.Opt[int]            `json:"n,omitzero"    url:"n,omitempty"`
		S gateway.Opt[string]         `json:"s,omitzero"    url:"s,omitempty"`
		B gateway.Opt[bool]           `json:"b,omitzero"    url:"b,omitempty"`
		M gateway.Opt[map[string]any] `json:"m,omitzero"    url:"-"`
	}
	for _, tc := range []struct {
		p         params
		body, url string
	}{
		{params{}, `{}`, ""},
		{
			params{N: gateway.Some(0), S: gateway.Some(""), B: gateway.Some(false), M: gateway.Some(map[string]any{"b": 1, "a": 2})},
			`{"n":0,"s":"","b":false,"m":{"a":2,"b":1}}`, "b=false&n=0&s=",
		},
		{
			params{N: gateway.Clear[int](), S: gateway.Clear[string](), B: gateway.Clear[bool](), M: gateway.Clear[map[string]any]()},
			`{"n":null,"s":null,"b":null,"m":null}`, "b=&n=&s=",
		},
	} {
		body, err := jsonv2.Marshal(tc.p)
		require.NoError(t, err)
		assert.Equal(t, tc.body, string(body))
		std, err := json.Marshal(tc.p)
		require.NoError(t, err)
		assert.Equal(t, tc.body, string(std), "encoding/json sends the same")
		values, err := query.Values(tc.p)
		require.NoError(t, err)
		assert.Equal(t, tc.url, values.Encode())
		var back params
		require.NoError(t, jsonv2.Unmarshal(body, &back))
		assert.Equal(t, tc.p.N, back.N)
		assert.Equal(t, tc.p.S, back.S)
		assert.Equal(t, tc.p.B, back.B)
		assert.Equal(t, tc.p.M.IsNull(), back.M.IsNull())
	}
	v, ok := gateway.Some(7).Get()
	assert.True(t, ok)
	assert.Equal(t, 7, v)
	_, ok = gateway.Clear[int]().Get()
	assert.False(t, ok)
	assert.Equal(t, []string{"7", "null", "absent"}, []string{gateway.Some(7).String(), gateway.Clear[int]().String(), gateway.Opt[int]{}.String()})
}

// FuzzOpt checks that bodies and queries carry values unchanged.
func FuzzOpt(f *testing.F) {
	f.Add("a", int64(1))
	f.Add("", int64(0))
	f.Add("null", int64(-1))
	f.Add("a&b=c \"\\\n", int64(1)<<62)
	f.Fuzz(func(t *testing.T, s string, n int64) {
		type params struct {
			S gateway.Opt[string] `json:"s,omitzero" url:"s"`
			N gateway.Opt[int64]  `json:"n,omitzero" url:"n"`
		}
		in := params{gateway.Some(s), gateway.Some(n)}
		body, err := jsonv2.Marshal(in)
		if err != nil {
			return // invalid UTF-8
		}
		var out params
		require.NoError(t, jsonv2.Unmarshal(body, &out))
		assert.Equal(t, in, out)
		values, err := query.Values(in)
		require.NoError(t, err)
		parsed, err := url.ParseQuery(values.Encode())
		require.NoError(t, err)
		assert.Equal(t, s, parsed.Get("s"))
	})
}

// TestResultsWithEncodingJSON: the standard library's JSON package writes the
// known fields, null for empty nullable ones, the unknown members of a transaction, and
// no field named Raw.
func TestResultsWithEncodingJSON(t *testing.T) {
	t.Parallel()
	body := `{"id":"tx-1","amount":100,"status":"pending","paid_at":null,"external_ref":"","informations":null,` +
		`"buyer":{"id":"b-1","name":"M","loyalty":{"tier":2}},"new_member":[1,{"a":null}]}`
	client := clientOf(t, play(reply(200, `{"success":true,"data":`+body+`}`)))
	tx, err := client.Transactions.Get(t.Context(), "tx-1")
	require.NoError(t, err)
	std, err := json.Marshal(map[string]any{"value": *tx, "pointer": tx})
	require.NoError(t, err)
	var got map[string]map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(std, &got))
	for _, form := range []string{"value", "pointer"} {
		m := got[form]
		assert.JSONEq(t, `[1,{"a":null}]`, string(m["new_member"]), "of Raw")
		assert.Equal(t, `null`, string(m["paid_at"]))
		assert.Equal(t, `null`, string(m["external_ref"]))
		assert.Equal(t, `null`, string(m["currency"]))
		assert.Equal(t, `null`, string(m["informations"]))
		assert.Equal(t, `null`, string(m["pix"]))
		assert.NotContains(t, m, "Raw")
	}
	assert.Equal(t, body, string(tx.Raw))
	again := clientOf(t, play(reply(200, `{"success":true,"data":`+string(mustMarshal(t, *tx))+`}`)))
	back, err := again.Transactions.Get(t.Context(), "tx-1")
	require.NoError(t, err)
	tx.Raw, back.Raw = nil, nil
	back.Metadata = tx.Metadata // null, not absent
	assert.Equal(t, tx, back)
}

// A list item of either shape is encoded like a transaction, and Raw has the shape
// that was received.
func TestListItemsEncodeLikeTransactions(t *testing.T) {
	t.Parallel()
	for item, want := range map[string]string{
		`{"id":"tx-1","products":[{"title":"Café","unit_price":500,"quantity":2,"size":"L"}]}`: `[{"name":"Café","price":500,"quantity":2}]`,
		`{"id":"tx-1","products":[{"name":"Café","price":500,"quantity":2}]}`:                  `[{"name":"Café","price":500,"quantity":2}]`,
		`{"id":"tx-1","products":[]}`: `[]`,
	} {
		tx := listed(t, item)
		var got map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(mustMarshal(t, tx), &got))
		assert.JSONEq(t, want, string(got["products"]), item)
		assert.NotContains(t, got, "payment", item)
	}
	item := `{"id":"tx-1","new":1,"payment":{"method":"pix","currency":"BRL","country":"BR","external_ref":"r","amount":5,"base_price":6,
		"fee":{"net_amount":4,"estimated_fee":1},"installments":1,"pix":{"qrcode":"000201","endToEnd":"E1","payer":"x"},"acquirer":{"a":1}}}`
	tx := listed(t, item)
	assert.Equal(t, item, string(tx.Raw))
	tx.Raw = nil
	assert.Equal(t, gateway.Transaction{
		ID: "tx-1", Method: gateway.Pix, Currency: gateway.BRL, Country: gateway.Brazil, ExternalRef: "r", Amount: 5, BasePrice: 6, Installments: 1,
		Fee: &gateway.Fee{NetAmount: 4, EstimatedFee: 1},
		Pix: &gateway.PixDetails{QRCode: "000201", EndToEndID: "E1"},
	}, tx)
	var again gateway.Transaction
	require.NoError(t, jsonv2.Unmarshal(mustMarshal(t, tx), &again))
	again.Metadata = tx.Metadata // null, not absent
	assert.Equal(t, tx, again)
	tx = listed(t, `{"id":"tx-1","payment":{"fee":12}}`)
	assert.Nil(t, tx.Fee)
	assert.Contains(t, string(tx.Raw), `{"fee":12}`, "a fee that is no object is only in Raw")

	tx = listed(t, `{"id":"tx-1","payment":{"fee":{"net_amount":"much"}}}`)
	assert.Equal(t, "tx-1", tx.ID, "an odd fee does not hide a transaction")
	assert.Nil(t, tx.Fee)
}

// listed returns the only item of a list.
func listed(t *testing.T, item string) gateway.Transaction {
	t.Helper()
	page, err := clientOf(t, play(reply(200, `{"success":true,"data":[`+item+`],"total":1}`))).Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	return page.Items[0]
}

// The gateway splits lists at commas, so a product name with a comma would be
// read as two names and match nothing.
func TestAListOfFiltersRejectsACommaInAValue(t *testing.T) {
	t.Parallel()
	params := gateway.TransactionListParams{
		Products: []string{"Filtro", "Café em grãos, 500 g"}, ID: []string{"a,b"}, Name: "Oliveira, Maria", // Name is not a list
	}
	want := "products[1] must not contain a comma: the gateway splits the list of values at commas"
	_, err := clientOf(t, play()).Transactions.List(t.Context(), params)
	require.ErrorIs(t, err, gateway.ErrValidation)
	require.ErrorContains(t, err, want)
	require.ErrorContains(t, err, "id[0]")
	params.Products, params.ID = params.Products[:1], nil
	_, err = clientOf(t, play(reply(200, `{"success":true,"data":[]}`))).Transactions.List(t.Context(), params)
	require.NoError(t, err)
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

func TestFormatAmount(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"BRL 1234.50":               gateway.FormatAmount(123450, gateway.BRL),
		"BRL 0.05":                  gateway.FormatAmount(5, gateway.BRL),
		"BRL 0.00":                  gateway.FormatAmount(0, gateway.BRL),
		"USD -1.00":                 gateway.FormatAmount(-100, gateway.USD),
		"CLP 1990":                  gateway.FormatAmount(1990, gateway.CLP),
		"PYG 0":                     gateway.FormatAmount(0, gateway.PYG),
		"KWD 1.500":                 gateway.FormatAmount(1500, "KWD"),
		"OMR 0.007":                 gateway.FormatAmount(7, "OMR"),
		"15.90":                     gateway.FormatAmount(1590, ""),
		"BRL -92233720368547758.08": gateway.FormatAmount(-1<<63, gateway.BRL),
		"BRL 92233720368547758.07":  gateway.FormatAmount(1<<63-1, gateway.BRL),
	} {
		assert.Equal(t, want, got)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	for raw, text := range map[string]string{`null`: "", `"campaign=summer"`: "campaign=summer", `{"a":"b"}`: `{"a":"b"}`, `"{\"a\":\"b\"}"`: `{"a":"b"}`} {
		var m gateway.Metadata
		require.NoError(t, jsonv2.Unmarshal([]byte(raw), &m))
		assert.Equal(t, text, m.Text())
		back, err := jsonv2.Marshal(m)
		require.NoError(t, err)
		assert.Equal(t, raw, string(back))
		assert.Equal(t, text == "", m.IsZero())
		if text != "" && text[0] == '{' {
			var v struct {
				A string `json:"a"`
			}
			require.NoError(t, m.Decode(&v))
			assert.Equal(t, "b", v.A)
		}
	}
	assert.Equal(t, "x", gateway.MetadataText("x").String())
}

func TestBuyerID(t *testing.T) {
	t.Parallel()
	for id, want := range map[gateway.BuyerID]string{"4711": `4711`, "0": `0`, "-1": `-1`, "007": `"007"`, "+1": `"+1"`, "1e3": `"1e3"`, orderID: `"` + orderID + `"`, "9223372036854775808": `"9223372036854775808"`} {
		b, err := jsonv2.Marshal(id)
		require.NoError(t, err)
		assert.Equal(t, want, string(b))
		var back gateway.BuyerID
		require.NoError(t, jsonv2.Unmarshal(b, &back))
		assert.Equal(t, id, back)
	}
}

// The constants of each type are the values that its rule accepts: the client
// can send every constant, and every value that the gateway may return has a
// constant, except the rarer currencies.
func TestConstantsAreTheKnownValues(t *testing.T) {
	t.Parallel()
	known := map[string][]string{
		"AuthorizationStatus": slices.Collect(spec.AuthorizationStatuses.All()),
		"CancellationReason":  slices.Collect(spec.CancellationReasons.All()),
		"Country":             slices.Collect(spec.Countries.All()),
		"Currency":            slices.Collect(spec.Currencies.All()), // not the further ones of subscriptions and links
		"CustomerStatus":      slices.Collect(spec.CustomerStatuses.All()),
		"DeliveryStatus":      slices.Collect(spec.DeliveryStatuses.All()),
		"Direction":           slices.Collect(spec.Directions.All()),
		"DocumentType":        slices.Collect(spec.CustomerDocumentTypes.All()),
		"FailurePolicy":       slices.Collect(spec.FailurePolicies.All()),
		"Interval":            slices.Collect(spec.Intervals.All()),
		"ItemType":            slices.Collect(spec.ItemTypes.All()),
		"LinkStatus":          slices.Collect(spec.LinkStatuses.All()),
		"Method":              slices.Collect(spec.Methods.All()),
		"PixKeyType":          slices.Collect(spec.PixKeyTypes.All()),
		"SessionStatus":       slices.Collect(spec.SessionStatuses.All()),
		"SubscriptionMethod":  slices.Collect(spec.SubscriptionMethods.All()),
		"SubscriptionStatus":  slices.Collect(spec.SubscriptionStatuses.All()),
		"TransactionStatus":   slices.Collect(spec.LiveTransactionStatuses.All()),
		"TransferStatus":      slices.Collect(spec.LiveTransferStatuses.All()),
	}
	offered := map[string][]string{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !spec.Names[0].IsExported() {
				return true
			}
			name, _ := spec.Type.(*ast.Ident)
			if value, isText := spec.Values[0].(*ast.BasicLit); isText && name != nil && name.IsExported() && value.Kind == token.STRING {
				text, err := strconv.Unquote(value.Value)
				require.NoError(t, err)
				offered[name.Name] = append(offered[name.Name], text)
			}
			return true
		})
	}
	for name, values := range known {
		assert.ElementsMatch(t, values, offered[name], name)
	}
	assert.Len(t, offered, len(known), "add every type that has constants to known")
}

// Test doubles and failed errors.As calls leave zero values, and printing those must
// not panic.
func TestZeroValuesPrintAndEncode(t *testing.T) {
	t.Parallel()
	for _, typ := range exportedTypes(t) {
		for _, v := range []any{reflect.Zero(typ).Interface(), reflect.New(typ).Interface()} {
			name := fmt.Sprintf("%T", v)
			assert.NotPanics(t, func() {
				for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
					assert.NotContains(t, fmt.Sprintf(verb, v), "PANIC", name+" "+verb)
				}
				_, _ = json.Marshal(v)
				_, _ = jsonv2.Marshal(v)
				if err, ok := v.(error); ok {
					_ = err.Error()
				}
				if l, ok := v.(slog.LogValuer); ok {
					_ = l.LogValue()
				}
			}, name)
		}
	}
}
