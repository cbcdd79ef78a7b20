package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// Every error body is decoded as far as possible, without a panic and in
// bounded memory. A truncated body has at most one error more than the complete
// one.
func FuzzProblem(f *testing.F) {
	for _, body := range []string{
		`{"type":"https://example.com/conflict","title":"Conflict","status":409,"detail":"d","instance":"/v2/x","code":"DUPLICATE_EXTERNAL_REF"}`,
		`{"title":"Validation Error","status":400,"errors":[{"field":"amount","message":"m","code":"too_small"},{"field":1},null,"x"]}`,
		`{"error":"DUPLICATE_EXTERNAL_REF","message":"m","status":409}`,
		`{"title":"t","validation_errors":[{"field":"amount","message":"m"}]}`,
		`{"success":false,"requestId":"r","error":{"message":"m","code":"C"}}`,
		"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>",
		"upstream connect error", "", "null", "[1,2", `{"title":"cut`, "\xff\xfe\x00", strings.Repeat(`{"error":`, 50),
		strings.Repeat("x", 1023) + "ã", `{"title":"` + strings.Repeat("\xffx", 600) + `"}`,
	} {
		f.Add([]byte(body), 10)
	}
	f.Fuzz(func(t *testing.T, body []byte, cut int) {
		whole := wire.DecodeProblem(body)

		assert.LessOrEqual(t, len(whole.Fields), 200)
		texts := []string{whole.Type, whole.Title, whole.Detail, whole.Instance, whole.Code, whole.RequestID}
		for _, field := range whole.Fields {
			texts = append(texts, field.Field, field.Message, field.Code)
		}
		for _, text := range texts {
			assert.LessOrEqual(t, len(text), 1<<10)
			assert.True(t, utf8.ValidString(text))
		}
		if cut >= 0 && cut <= len(body) {
			part := wire.DecodeProblem(body[:cut])
			assert.LessOrEqual(t, len(part.Fields), len(whole.Fields)+1)
		}
	})
}

// Both list shapes decode to the same items.
func FuzzList(f *testing.F) {
	f.Add(`{"id":"1","amount":5,"status":"paid"}`, "abc", 3)
	f.Add(`{"id":"1","payment":{"method":"pix","amount":5,"currency":"BRL"}}`, "", 0)
	f.Add(`{"id":"1"},{"id":"2","buyer":{"name":"x"},"new_member":[1]}`, "x", 2)
	f.Add(``, "", 0)
	f.Add(`1`, "x", -1)
	f.Fuzz(func(t *testing.T, items, cursor string, total int) {
		array := jsontext.Value("[" + items + "]")
		if !array.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) || !utf8.ValidString(cursor) {
			_, _ = wire.DecodeList[gateway.Transaction]([]byte(items), &spec.TransactionMembers) // must not panic
			return
		}
		quoted, err := jsontext.AppendQuote(nil, cursor)
		require.NoError(t, err)
		members := fmt.Sprintf(`"data":%s,"total":%d,"next_cursor":%s,"prev_cursor":null`, array, total, quoted)

		nested, errNested := wire.DecodeList[gateway.Transaction]([]byte(`{"success":true,"requestId":"r","data":{`+members+`}}`), &spec.TransactionMembers)
		flat, errFlat := wire.DecodeList[gateway.Transaction]([]byte(`{"success":true,"requestId":"r",`+members+`}`), &spec.TransactionMembers)

		require.Equal(t, errNested == nil, errFlat == nil, "%v, %v", errNested, errFlat)
		if errFlat == nil {
			for i := range flat.Items {
				assert.Equal(t, string(nested.Raw(i)), string(flat.Raw(i)))
			}
			assert.Equal(t, nested.Items, flat.Items)
			assert.Equal(t, nested.Total, flat.Total)
			assert.Equal(t, nested.NextCursor, flat.NextCursor)
			assert.Equal(t, nested.PrevCursor, flat.PrevCursor)
			assert.Equal(t, cursor, flat.NextCursor)
		}
	})
}

// Gateways name the field of an error in several ways.
func TestFieldsOfAProblem(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]wire.Field{
		`{"errors":[{"path":["products",0,"name"],"message":"m","code":"too_small"}]}`: {{Field: "products[0].name", Message: "m", Code: "too_small"}},
		`{"validation_errors":[{"path":"buyer.email","message":"m"}]}`:                 {{Field: "buyer.email", Message: "m"}},
		`{"errors":[{"field":"amount","path":[],"message":"m"}]}`:                      {{Field: "amount", Message: "m"}},
		`{"errors":[{"code":"unrecognized_keys","keys":["number"],"path":["buyer","document"],"message":"m"}]}`: {
			{Field: "buyer.document.number", Message: "m", Code: "unrecognized_keys"},
		},
		`{"errors":[{"keys":["a","b",1],"path":[],"code":"unrecognized_keys"}]}`: {
			{Field: "a", Code: "unrecognized_keys"}, {Field: "b", Code: "unrecognized_keys"},
		},
		`{"errors":[{"path":[["x"],{},null],"message":"m"}]}`: {{Field: `["x"].{}.`, Message: "m"}},
	} {
		assert.Equal(t, want, wire.DecodeProblem([]byte(body)).Fields, body)
	}
}
