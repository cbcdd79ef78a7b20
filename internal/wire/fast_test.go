package wire_test

import (
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// responses are golden responses of every resource.
var responses = []string{
	"transactions/create.response.json", "transactions/create.live.response.json", "transactions/create_card.response.json",
	"transactions/create_voucher.response.json", "transactions/get.response.json", "transactions/list.response.json",
	"transactions/list.live.response.json", "transactions/refund.response.json", "customers/list.response.json",
	"subscriptions/get.response.json", "transfers/create.live.response.json", "checkout_sessions/open.response.json",
	"errors/failed.200.json",
}

// oddBodies are unusual or malformed bodies that resemble valid ones.
var oddBodies = []string{
	``, ` `, `null`, `{}`, `[]`, `{"data":null}`, `{"data":{}}`, `{"data":[]}`, `{"data":{"data":[]}}`, `{"data":{"data":null}}`,
	`{"data":{"id":"a","id":"b"}}`, `{"data":{"id":"a"},"data":{"amount":1}}`, `{"data":{"pix":{"qr_code":"a"},"pix":{"receipt_url":"b"}}}`,
	`{"data":{"x":1,"x":2}}`, `{"data":{"amount":1.0}}`, `{"data":{"amount":"1"}}`, `{"data":{"amount":1e2}}`, `{"data":{"amount":-0}}`,
	`{"data":{"amount":012}}`, `{"data":{"amount":9223372036854775807}}`, `{"data":{"amount":9223372036854775808}}`,
	`{"data":{"amount":-9223372036854775808}}`, `{"data":{"amount":+1}}`, `{"data":{"amount":-}}`, `{"data":{"amount":.5}}`,
	`{"data":{"traceable":tru}}`, `{"data":{"traceable":"true"}}`, `{"data":{"id":"\u00e9\n\"\\"}}`, `{"data":{"id":"\ud83d\ude00"}}`,
	`{"data":{"id":"\ud83d"}}`, `{"data":{"id":"\u12"}}`, "{\"data\":{\"id\":\"\xff\"}}", "{\"data\":{\"id\":\"a\nb\"}}", "\ufeff{}",
	`{"data":{"i\u0064":"a"}}`, `{"data":{"\u0069d":"a","id":"b"}}`, `{"data":{"ID":"a"}}`, `{"data":{"id":"a",}}`, `{"data":{"id":"a"}`,
	`{"data":{"id" "a"}}`, `{"data":{"products":[null]}}`, `{"data":{"products":[{},{"name":"x"},]}}`, `{"data":{"products":{}}}`,
	`{"data":{"buyer":null}}`, `{"data":{"buyer":[]}}`, `{"data":{"metadata":null}}`, `{"data":{"paid_at":17}}`, `{"data":{"paid_at":""}}`,
	`{"data":{"paid_at":"2027-02-31T00:00:00.000Z"}}`, `{"data":{"x":{"a":[1,{"b":null}]},"y":"\ud800"}}`, `{} {}`, `{}x`, `{"success":false}`,
	`{"data":{"extra":{"a":1,"a":2}}}`, `{"data":[{"0":{"":"","":""}}]}`, `{"":1,"data":{"":2}}`, "{\t\"data\" : {\r\n\"id\" :\"a\" } }", `{"data":{"fee":{"net_amount":1}},"success":0}`,
	`{"data":[{"id":"a","payment":{"amount":"5"}}],"total":"7","next_cursor":null}`, `{"data":"x"}`, "{\"data\":{\"id\":\"\x00\"}}", `{"data":{"id":"a"}}` + "\x00",
}

// sameDecode checks that the fast decoder, if it accepts the input, returns what
// the JSON package returns.
func sameDecode[T any](t *testing.T, body []byte) {
	t.Helper()
	var fast, owned, strict T
	if !jsonread.Decode(body, &fast) {
		return
	}
	require.True(t, jsonread.DecodeOwned(body, &owned))
	if !reflect.DeepEqual(fast, owned) {
		assert.Equal(t, fast, owned, "%T from %q", strict, body)
	}
	require.NoError(t, json.Unmarshal(body, &strict, jsonread.Lenient), "%T from %q", strict, body)
	if !reflect.DeepEqual(strict, fast) {
		assert.Equal(t, strict, fast, "%T from %q", strict, body)
	}
}

func sameDecodes(t *testing.T, body []byte) {
	t.Helper()
	sameData[gateway.Transaction](t, body)
	sameData[gateway.Subscription](t, body)
	sameData[gateway.CheckoutSession](t, body)
	sameData[gateway.Transfer](t, body)
	sameItems[gateway.Transaction](t, body)
	sameItems[gateway.Customer](t, body)
	sameExact[gateway.TransactionParams](t, body)
	sameExact[gateway.SubscriptionParams](t, body)
	sameExact[gateway.CheckoutSessionParams](t, body)
}

// dataOnly is an envelope that is decoded without the place of the data.
type dataOnly[T any] struct {
	RequestID string `json:"requestId"`
	Data      *T     `json:"data"`
}

// sameData checks a body with one resource: the resource, and its JSON.
func sameData[T any](t *testing.T, body []byte) {
	t.Helper()
	sameDecode[dataOnly[T]](t, body)
	var fast, slow wire.Envelope[T]
	if !jsonread.Decode(body, &fast) || fast.Data.Value == nil {
		return
	}
	require.NoError(t, json.Unmarshal(body, &slow, jsonread.Lenient), "%T from %q", slow, body)
	assert.Equal(t, fast.Data.Value, slow.Data.Value, "from %q", body)
	assert.Equal(t, string(fast.Data.Raw(body)), string(slow.Data.Raw(body)), "from %q", body)
	assert.True(t, stdjson.Valid(fast.Data.Raw(body)))
}

// sameItems checks a body with a list: the items, and their JSON.
func sameItems[T any](t *testing.T, body []byte) {
	t.Helper()
	var fast, slow wire.ListEnvelope[T]
	if !jsonread.Decode(body, &fast) {
		return
	}
	require.NoError(t, json.Unmarshal(body, &slow, jsonread.Lenient), "%T from %q", slow, body)
	require.Equal(t, fast.Data.Items, slow.Data.Items, "from %q", body)
	for i := range fast.Data.Items {
		assert.Equal(t, string(fast.Data.Raw(body, i)), string(slow.Data.Raw(body, i)), "item %d from %q", i, body)
	}
	fast.Data, slow.Data = wire.ListEnvelope[T]{}.Data, wire.ListEnvelope[T]{}.Data
	assert.Equal(t, fast, slow, "from %q", body)
}

// sameExact checks that a request parsed for validation is decoded as the JSON
// package decodes it, type errors included.
func sameExact[T any](t *testing.T, body []byte) {
	t.Helper()
	doc, err := spec.Parse(body)
	if err != nil {
		return // not an object with unique names
	}
	defer doc.Release()
	var exact, plain T
	err = doc.Decode(&exact)
	wantErr := json.Unmarshal(body, &plain)
	require.Equal(t, wantErr == nil, err == nil, "%T from %q: %v", plain, body, err)
	if err == nil && !reflect.DeepEqual(plain, exact) {
		assert.Equal(t, plain, exact, "%T from %q", plain, body)
	}
}

func TestFastDecodeMatchesTheJSONPackage(t *testing.T) {
	t.Parallel()
	for _, name := range responses {
		sameDecodes(t, files.Read(t, name))
	}
	for _, body := range oddBodies {
		sameDecodes(t, []byte(body))
	}
}

// TestDecodedStrings checks which values survive a change of the body: all but
// those of a short response with one resource.
func TestDecodedStrings(t *testing.T) {
	t.Parallel()
	short := `{"data":{"id":"tx_1","external_ref":"order-7","metadata":{"k":"v"}}}`
	long := short[:len(short)-2] + `,"unknown":"` + strings.Repeat("x", 2<<10) + `"}}`
	for _, text := range []string{short, long} {
		body := []byte(text)
		var e wire.Envelope[gateway.Transaction]
		require.NoError(t, wire.Decode(body, &e))
		clear(body)
		assert.Equal(t, "tx_1", e.Data.Value.ID)

		body = []byte(text)
		tx, err := wire.DecodeEnvelope[gateway.Transaction](body, &spec.TransactionMembers)
		require.NoError(t, err)
		clear(body)
		assert.Equal(t, text == long, tx.Data.ID == "tx_1", "copied")
		assert.JSONEq(t, `{"k":"v"}`, tx.Data.Metadata.String())
	}
}

// TestFastDecodeIsUsed fails if common responses are left to the JSON package,
// which otherwise only benchmarks would show.
//
//nolint:paralleltest // counts allocations
func TestFastDecodeIsUsed(t *testing.T) {
	fasterThanJSON[wire.Envelope[gateway.Transaction]](t, "transactions/create.response.json")
	fasterThanJSON[wire.ListEnvelope[gateway.Transfer]](t, "transfers/list.response.json")
	fasterThanJSON[wire.Envelope[gateway.Subscription]](t, "subscriptions/get.response.json")
	fasterThanJSON[gateway.TransactionParams](t, "transactions/create.request.json")
}

func fasterThanJSON[T any](t *testing.T, name string) {
	t.Helper()
	body := files.Read(t, name)
	fast := testing.AllocsPerRun(50, func() { assert.True(t, jsonread.Decode(body, new(T)), name) })
	whole := testing.AllocsPerRun(50, func() { assert.NoError(t, json.Unmarshal(body, new(T), jsonread.Lenient), name) })
	assert.Less(t, fast, whole*0.9, "%s is decoded by the JSON package: see makePlan in internal/jsonread", name)
}

// fieldsOfAllSizes has fields of every kind next to fields of other sizes.
type fieldsOfAllSizes struct {
	Bool    bool    `json:"bool"`
	String  string  `json:"string"`
	Small   int8    `json:"small"`
	Int     int     `json:"int"`
	Other   bool    `json:"other"`
	Int64   int64   `json:"int64"`
	Ratio   float32 `json:"ratio"`
	Array   [3]byte `json:"array"`
	Pointer *Embedded
	Embedded
	Slice    []Embedded       `json:"slice"`
	Pointers []*Embedded      `json:"pointers"`
	Lists    [][]string       `json:"lists"`
	Map      map[string]int64 `json:"map"`
	Last     string           `json:"last"`
}

// Embedded has a size that is not a multiple of its fields' alignment.
type Embedded struct {
	Name string `json:"name"`
	Flag bool   `json:"flag"`
	Odd  bool   `json:"odd"`
}

// embeddedPointer is left to the JSON package.
type embeddedPointer struct {
	Before string `json:"before"`
	*Embedded
	After string `json:"after"`
}

func TestFastDecodeReachesEveryField(t *testing.T) {
	t.Parallel()
	body := []byte(`{"bool":true,"string":"s","small":-8,"int":-1,"other":true,"int64":9007199254740993,"ratio":0.5,"array":"AQID",` +
		`"Pointer":{"name":"p","flag":true},"name":"e","odd":true,"slice":[{"name":"1","flag":true},{"odd":true},{"name":"3"},{"name":"4"},{"name":"5"}],` +
		`"pointers":[{"name":"a"},null,{"flag":true}],"lists":[["x","y"],[],null,["z"]],"unknown":[1],"map":{"k":7},"last":"l"}`)
	var v fieldsOfAllSizes
	require.True(t, jsonread.Decode(body, &v))
	for field, value := range reflect.ValueOf(v).Fields() {
		assert.False(t, value.IsZero(), field.Name)
	}
	sameDecode[fieldsOfAllSizes](t, body)
	sameDecode[embeddedPointer](t, []byte(`{"before":"b","name":"n","flag":true,"after":"a"}`))
}

func FuzzFastDecode(f *testing.F) {
	for _, name := range responses {
		f.Add(files.Read(f, name))
	}
	for _, body := range oddBodies {
		f.Add([]byte(body))
	}
	for _, name := range []string{"transactions/create.request.json", "subscriptions/create.request.json"} {
		f.Add(files.Read(f, name))
	}
	f.Fuzz(sameDecodes)
}
