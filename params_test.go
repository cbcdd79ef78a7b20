package gateway_test

import (
	"fmt"
	"go/token"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// bodies are the params that are sent as a JSON body.
var bodies = []any{
	gateway.TransactionParams{},
	gateway.BuyerParams{},
	gateway.RefundParams{},
	gateway.DeliveryParams{},
	gateway.SandboxStatusParams{},
	gateway.SubscriptionParams{},
	gateway.SubscriptionUpdateParams{},
	gateway.SubscriptionCancelParams{},
	gateway.TransferParams{},
	gateway.TransferCancelParams{},
	gateway.CustomerParams{},
	gateway.CheckoutLinkParams{},
	gateway.CheckoutSessionParams{},
}

// randomize sets v to a random value that a caller may send, including the zero
// value.
func randomize(r *rand.Rand, v reflect.Value) {
	texts := []string{"", "a", "São Paulo", "\"quoted\" \\ </script>\u2028\n\x00", "😀", "\xff", "null"}
	if _, own := v.Addr().Interface().(json.Unmarshaler); own && r.IntN(3) > 0 {
		for _, text := range []string{`"x"`, `1`, `1.5`, `true`, `null`} {
			if r.IntN(2) == 0 && json.Unmarshal([]byte(text), v.Addr().Interface()) == nil {
				return
			}
		}
	}
	switch v.Kind() { //nolint:exhaustive // no params have a field of another kind
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts)*3/2)%len(texts)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64() >> r.IntN(64) * int64(r.IntN(3)-1))
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			randomize(r, v.Elem())
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
			for i := range v.Len() {
				randomize(r, v.Index(i))
			}
		}
	case reflect.Map:
		if r.IntN(10) == 0 && json.Unmarshal([]byte(`{"new":[1]}`), v.Addr().Interface()) != nil {
			panic("a map whose values can't be arrays")
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if token.IsExported(v.Type().Field(i).Name) {
				randomize(r, v.Field(i))
			}
		}
	}
}

// Requests are encoded with cached plans for their types. The result must be the
// same as that of the JSON package.
func TestParamsAreEncodedLikeTheJSONPackage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, params := range bodies {
		for range 300 {
			v := reflect.New(reflect.TypeOf(params))
			randomize(r, v.Elem())
			for _, params := range []any{v.Interface(), v.Elem().Interface()} {
				want, wantErr := gateway.EncodeRequestSlowly(params)
				got, err := gateway.EncodeRequest(params)
				require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err), "%#v", params)
				require.Equal(t, string(want), string(got), "%#v", params)
			}
		}
	}
}

// Every params type with a body must be in bodies.
func TestAllParamsWithABodyAreCompared(t *testing.T) {
	t.Parallel()
	listed, err := os.ReadFile("api/next.txt")
	require.NoError(t, err)
	var known []string
	for _, params := range bodies {
		known = append(known, reflect.TypeOf(params).Name())
	}
	for _, m := range regexp.MustCompile(`(?m)^pkg github.com/gateway-go/gateway, type (\w+Params) struct`).FindAllStringSubmatch(string(listed), -1) {
		if name := m[1]; !strings.HasSuffix(name, "ListParams") { // sent as a query
			assert.Contains(t, known, name, "add it to bodies")
		}
	}
}
