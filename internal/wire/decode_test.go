package wire_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// FuzzAnyBody checks that no body makes the decoder panic, and that the decoded
// problem is bounded in size.
func FuzzAnyBody(f *testing.F) {
	for _, name := range []string{
		"errors/validation.400.json", "errors/duplicate.live.409.json", "errors/validation_errors.422.json", "errors/failed.200.json",
		"errors/bad_gateway.502.html",
	} {
		f.Add(files.Read(f, name))
	}
	for _, body := range []string{
		``, `{`, `{"errors":[{"field"`, `{"error":{"error":{"error":1}}}`, `{"errors":{"a":["b"]}}`, `[[[[`, `{"status":1e999}`, `<title>`, "\xff\xfe",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p := wire.DecodeProblem(body)
		texts := []string{p.Type, p.Title, p.Detail, p.Instance, p.Code, p.RequestID}
		for _, field := range p.Fields {
			texts = append(texts, field.Field, field.Message, field.Code)
		}
		for _, text := range texts {
			assert.LessOrEqual(t, len(text), 3<<10)
			assert.True(t, utf8.ValidString(text))
		}
		assert.LessOrEqual(t, len(p.Fields), 200)
		assert.True(t, p.Status == 0 || p.Status >= 100 && p.Status <= 999)
		wire.ExtractIdentity(body)
		wire.Failed(body)
	})
}

// FuzzListItems checks that every body is either rejected or decoded as a page
// whose items survive a round trip.
func FuzzListItems(f *testing.F) {
	for _, name := range []string{"transactions/list.response.json", "transactions/list.live.response.json", "customers/list.response.json"} {
		f.Add(files.Read(f, name))
	}
	for _, body := range oddBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := wire.DecodeList[gateway.Transaction](body, &spec.TransactionMembers)
		if err != nil {
			require.Nil(t, list)
			require.Error(t, wire.DescribeError(err))
			return
		}
		for i := range list.Items {
			encoded, err := list.Items[i].MarshalJSON()
			require.NoError(t, err)
			var again gateway.Transaction
			require.NoError(t, wire.Decode(encoded, &again), "%s", encoded)
			assert.Equal(t, list.Items[i].ID, again.ID)
			assert.Equal(t, list.Items[i].Amount, again.Amount)
		}
	})
}

func TestLenientDecode(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]gateway.Transaction{
		`{"amount":"1200"}`:                      {Amount: 1200},
		`{"amount":1200.00}`:                     {Amount: 1200},
		`{"amount":"1200.00"}`:                   {Amount: 1200},
		`{"amount":1.2e3}`:                       {Amount: 1200},
		`{"amount":""}`:                          {},
		`{"id":7,"amount":1}`:                    {ID: "7", Amount: 1},
		`{"id":7.50,"status":true}`:              {ID: "7.50", Status: "true"},
		`{"traceable":"true"}`:                   {Traceable: true},
		`{"traceable":1}`:                        {Traceable: true},
		`{"traceable":"0"}`:                      {},
		`{"installments":"12"}`:                  {Installments: 12},
		`{"buyer":[],"amount":"1"}`:              {Amount: 1},
		`{"pix":"","voucher":[],"amount":1}`:     {Amount: 1},
		`{"products":{},"splits":"","amount":1}`: {Amount: 1},
		`{"ip_address":{"v4":"1.2.3.4"}}`:        {IPAddress: `{"v4":"1.2.3.4"}`},
		`{"amount":1,"amount":"2"}`:              {Amount: 2},
	} {
		var got gateway.Transaction
		require.NoError(t, wire.Decode([]byte(body), &got), body)
		assert.Equal(t, want, got, body)
	}
	for _, body := range []string{
		`{"amount":12.5}`, `{"amount":"12.5"}`, `{"amount":"R$ 12"}`, `{"amount":true}`, `{"amount":[1]}`, `{"amount":1e19}`, `{"amount":"9223372036854775808"}`,
		`{"buyer":"Maria"}`, `{"products":"x"}`, `{"traceable":"yes"}`, `{"pix":7}`, `{"amount":9007199254740993.0}`,
	} {
		var got gateway.Transaction
		err := wire.Decode([]byte(body), &got)
		require.Error(t, err, "a member that can't be decoded must not be dropped: %s", body)
		assert.NotContains(t, wire.DescribeError(err).Error(), "Maria")
	}
}

func TestDescribeError(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"buyer":{"name":{}},"amount":[1]}`: "the response at byte 30, /amount, has an unexpected type (an array)",
		`{"buyer":{"address":{"city":"Sã`:    "the response at byte",
		`<html>`:                             "the response at byte 0 is malformed or truncated JSON",
		``:                                   "truncated JSON",
	} {
		var got gateway.Transaction
		err := wire.Decode([]byte(body), &got)
		require.Error(t, err, body)
		assert.Contains(t, wire.DescribeError(err).Error(), want, body)
	}
}

func TestInvalidUTF8DoesNotHideAPayment(t *testing.T) {
	t.Parallel()
	got, err := wire.DecodeEnvelope[gateway.Transaction]([]byte("{\"success\":true,\"data\":{\"id\":\"tx-1\",\"buyer\":{\"name\":\"Jo\xe3o\"},\"status\":\"paid\"}}"), &spec.TransactionMembers)
	require.NoError(t, err)
	assert.Equal(t, "tx-1", got.Data.ID)
	assert.Equal(t, "Jo�o", got.Data.Buyer.Name)
	assert.True(t, got.Data.Settled())
}
