package httpapi_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parameter is one parameter of a list's query, with accepted and rejected
// values.
type parameter struct {
	name    string
	allowed []string
	refused []string
	code    string
}

// The states of the interface document, and the others that filters accept in
// both dialects.
const (
	transactionStates     = "pending paid expired canceled refused refunded partially_refunded chargedback captured"
	liveTransactionStates = "authorized three_ds_required in_protest partially_paid processing processed med pre_chargedback"
	transferStates        = "pending in_analysis processing paid error cancelled"
	liveTransferStates    = "scheduled rejected unknown"
	subscriptionStates    = "incomplete trialing active past_due cancel_scheduled canceled"
)

// parameters are those of every list.
func parameters() map[string][]parameter {
	count := func(name, most, over string) []parameter {
		return []parameter{
			{name, values("1", most), values("0", "-1"), "too_small"},
			{name, nil, values(over), "too_big"},
			// Includes values that Go parses as floats, and the same value
			// twice, joined.
			{name, nil, values("abc", "1.5", "1.0", "1e1", "0x1p4", " 1", "1,2", "null"), "invalid_type"},
		}
	}
	cursors := append(count("limit", "100", "101"),
		parameter{"direction", values("next", "prev"), values("back", "NEXT", "next,prev"), "invalid_enum_value"},
		parameter{"cursor", nil, values("red", "AAAAAAAAAAA", "%00"), "invalid_string"})
	date := func(name string) parameter {
		return parameter{
			name,
			values("2027-01-04", "2028-02-29", "2027-01-04T12:00:00Z", "2027-01-04T12:00:00.5-03:00"),
			values("yesterday", "2027-02-29", "2027-13-01", "04/01/2027", "1799064000", "2027-01-04T12:00:00",
				"2027-01-04 12:00:00Z", "2027-01-04T25:00:00Z"),
			"invalid_string",
		}
	}
	oneOf := func(name, all string) parameter {
		return parameter{name, strings.Fields(all), values("lost", "PAID", "paid,pending"), "invalid_enum_value"}
	}
	anyOf := func(name, all string) parameter {
		fields := strings.Fields(all)
		return parameter{
			name, append(fields, strings.Join(fields, ",")),
			values("lost", strings.ToLower(fields[0])+"?", fields[0]+",", fields[0]+",lost", fields[0]+"&"+name+"=lost"), "invalid_enum_value",
		}
	}
	return map[string][]parameter{
		"/v2/transactions": slices.Concat(cursors, []parameter{
			anyOf("paymentMethods", "pix voucher credit_card"),
			anyOf("currency", currencies),
			anyOf("status", transactionStates+" "+liveTransactionStates),
			anyOf("deliveryStatus", "waiting in_transit delivered"),
			{"traceable", values("true", "false"), values("1", "yes", "TRUE", "true,false"), "invalid_type"},
			{"installments", values("1", "12", "1,12", "3&installments=6"), values("x", "1.5", "3,", "3,x"), "invalid_type"},
			{"installments", nil, values("0", "3,0"), "too_small"},
			{"installments", nil, values("13", "3&installments=13"), "too_big"},
			date("dateFrom"), date("dateTo"),
		}),
		"/v2/transfers": slices.Concat(cursors, []parameter{
			oneOf("status", transferStates+" "+liveTransferStates),
		}),
		"/v2/subscriptions": slices.Concat(cursors, []parameter{
			oneOf("status", subscriptionStates), date("created_after"), date("created_before"),
		}),
		"/v2/customers": slices.Concat(count("page", "1000000", "1000001"), count("limit", "100", "101")),
	}
}

// An invalid parameter is named, with 422 in both dialects.
func TestListParameters(t *testing.T) {
	t.Parallel()
	for dialect, change := range dialects {
		for path, list := range parameters() {
			t.Run(dialect+" "+path, func(t *testing.T) {
				t.Parallel()
				m := newMock(t, change)
				for _, p := range list {
					for _, value := range p.allowed {
						a := m.call(http.MethodGet, path+"?"+query(p.name, value), "")
						assert.Equal(t, http.StatusOK, a.Status, "%s=%s: %s", p.name, value, a.Body)
					}
					for _, value := range p.refused {
						a := m.call(http.MethodGet, path+"?"+query(p.name, value), "").
							problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
						a.field(p.name, p.code)
						assert.Equal(t, "Validation Error", a.at("title"))
						assert.Equal(t, path, a.at("instance"), "without the query")
					}
				}
			})
		}
	}
}

// A parameter that is sent empty counts as not sent, in every list and also
// beside one that is not empty: a form sends all of its fields.
func TestEmptyListParameters(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"/v2/transactions":  "id name email documentNumber phone products",
		"/v2/subscriptions": "customer_email",
		"/v2/customers":     "search document_number email phone external_ref status ip_address",
	}
	for dialect, change := range dialects {
		m := newMock(t, change)
		require.Equal(t, http.StatusCreated, m.subscribe(m.person("Ana Souza"), `"token":"pgct_ok"`).Status)
		m.payout("1")
		for path, list := range parameters() {
			total := in(dialect, "data.total", "total")
			if path == "/v2/customers" {
				total = "metadata.total"
			}
			names := strings.Fields(texts[path])
			for _, p := range list {
				names = append(names, p.name)
			}
			for _, name := range names {
				for _, query := range []string{name, name + "=", name + "=&" + name + "="} {
					assert.InDelta(t, 1, m.get(path+"?"+query).at(total), 0, "%s %s?%s", dialect, path, query)
				}
			}
		}
		assert.InDelta(t, 0, m.get("/v2/transfers?status=&status=paid&status=").at(in(dialect, "data.total", "total")), 0)
	}
}

// query encodes a parameter; a value with another "name=" in it stays two.
func query(name, value string) string {
	var parts []string
	for v := range strings.SplitSeq(value, "&"+name+"=") {
		parts = append(parts, name+"="+url.QueryEscape(v))
	}
	return strings.Join(parts, "&")
}

// All of them at once, in the order of the rules; the cursor, which only the
// list itself can check, comes last.
func TestListErrorsAtOnce(t *testing.T) {
	t.Parallel()
	for dialect, change := range dialects {
		m := newMock(t, change)
		for target, fields := range map[string][]string{
			"/v2/transactions?dateTo=x&limit=0&direction=x&status=x&cursor=x":     {"limit", "direction", "status", "dateTo", "cursor"},
			"/v2/transfers?status=x&direction=x&limit=x":                          {"limit", "direction", "status"},
			"/v2/subscriptions?created_before=x&created_after=x&status=x&limit=0": {"limit", "status", "created_after", "created_before"},
			"/v2/customers?limit=0&page=0":                                        {"page", "limit"},
		} {
			a := m.call(http.MethodGet, target, "").problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
			var named []string
			for _, e := range a.at("errors").([]any) {
				named = append(named, e.(map[string]any)["field"].(string))
			}
			assert.Equal(t, fields, named, "%s %s", dialect, target)
		}
		for path := range parameters() {
			m.call(http.MethodGet, path+"?a=%zz", "").problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
			assert.Equal(t, http.StatusOK, m.call(http.MethodGet, path+"?colour=red", "").Status, "unknown parameters are ignored")
		}
	}
}

// A cursor is valid in one list only, and only if complete.
func TestCursorsOfAnotherList(t *testing.T) {
	t.Parallel()
	for dialect, change := range dialects {
		m := newMock(t, change)
		customer := m.person("Ana Souza")
		for _, ref := range []string{"1", "2"} {
			m.payout(ref)
			require.Equal(t, http.StatusCreated, m.subscribe(customer, `"token":"pgct_ok_`+ref+`"`).Status)
		}
		lists := []string{"/v2/transactions", "/v2/transfers", "/v2/subscriptions"}
		for _, path := range lists {
			cursor := m.get(path + "?limit=1").text(in(dialect, "data.next_cursor", "next_cursor"))
			for _, other := range lists {
				a := m.call(http.MethodGet, other+"?cursor="+cursor, "")
				if other == path {
					assert.Equal(t, http.StatusOK, a.Status)
					continue
				}
				a.problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("cursor", "invalid_string")
			}
			for _, bad := range []string{cursor[1:], cursor[:len(cursor)-1], cursor + "A", cursor[:7] + "AAAA"} {
				m.call(http.MethodGet, path+"?cursor="+bad, "").
					problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("cursor", "invalid_string")
			}
		}
	}
}
