package backoffice

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
)

func TestMoney(t *testing.T) {
	t.Parallel()
	for want, is := range map[string]struct {
		cents    int64
		currency gateway.Currency
	}{
		"BRL_0.00":          {0, gateway.BRL},
		"BRL_0.05":          {5, gateway.BRL},
		"BRL_999.99":        {99999, gateway.BRL},
		"BRL_1,000.00":      {100000, gateway.BRL},
		"BRL_−1,234,567.89": {-123456789, gateway.BRL},
		"CLP_1,234,567":     {1234567, gateway.CLP},
		"KWD_1,234.567":     {1234567, "KWD"},
		"JPY_100":           {100, "JPY"},
		"−0.07":             {-7, ""},
	} {
		assert.Equal(t, strings.ReplaceAll(want, "_", "\u00A0"), money(is.cents, is.currency))
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0 s": 0, "59 s": time.Minute - 1, "1 min": time.Minute, "59 min": time.Hour - 1, "47 h": 48*time.Hour - 1, "2 days": 48 * time.Hour,
	} {
		assert.Equal(t, want, age(d))
	}
}

func TestTimesAreInTheZoneOfTheAccount(t *testing.T) {
	t.Parallel()
	zone := func(account string) (*time.Location, error) {
		if account != "shop" {
			return nil, merchant.ErrAccount
		}
		return time.FixedZone("BRT", -3*60*60), nil
	}
	when := time.Date(2026, 12, 1, 1, 2, 3, 0, time.UTC)
	assert.Equal(t, &stamp{UTC: "2026-12-01T01:02:03Z", Text: "2026-11-30 22:02:03 BRT"}, at(zone, "shop", when))
	assert.Equal(t, &stamp{UTC: "2026-12-01T01:02:03Z", Text: "2026-12-01 01:02:03 UTC"}, at(zone, "", when))
	assert.Nil(t, at(zone, "shop", time.Time{}))
}

// Links are relative, and an ID can't lead elsewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"./":    link(""),
		"month": link("month", "account", ""),
		"order?id=..%2F..%2F%3Fx%3D1%26done%3Dretry%23": link("order", "id", "../../?x=1&done=retry#"),
		"order?id=javascript%3Aalert%281%29":            link("order", "id", "javascript:alert(1)"),
		"find?q=shop-1":                                 owner(&merchant.Problem{Record: "shop-1"}),
		"order?id=A%2F1":                                owner(&merchant.Problem{Record: "shop-1", Order: "A/1"}),
		"subscription?id=M1":                            owner(&merchant.Problem{Record: "M1", Subscription: "M1"}),
		"":                                              owner(&merchant.Problem{}),
	} {
		assert.Equal(t, want, got)
	}
}

func TestAFileNameIsPlain(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	(&download{w: w, kind: "text/csv", name: "a\"\r\nX: 1-ü.csv"}).begin()
	assert.Equal(t, `attachment; filename="a___X__1-_.csv"`, w.Header().Get("Content-Disposition"))
}

// A person gets a reason for every kind and every decision.
func TestEveryKindHasAMeaning(t *testing.T) {
	t.Parallel()
	for kind, meaning := range meanings {
		require.NotEmpty(t, meaning)
		decisions := (&merchant.Problem{Kind: kind}).Decisions()
		require.NotEmpty(t, decisions)
		effects := make(map[string]bool)
		for _, d := range decisions {
			effects[effect(kind, d)] = true
		}
		assert.Len(t, effects, len(decisions), kind)
	}
}
