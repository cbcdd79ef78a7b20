package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// place is a response in which a resource is returned.
type place struct {
	name     string
	response string // the file; the odd member is in its data, or in its first item
	status   int
	table    *spec.Members
	shape    reflect.Type // what the resource is decoded into
	write    bool
	compared []string // members that a create compares with its params
	run      func(context.Context, *gateway.Client, ...gateway.RequestOption) (result any, raw json.RawMessage, err error)
}

// first returns the first item of a page, its Raw and the error.
func first[T any](page *gateway.Page[T], err error, raw func(*T) json.RawMessage) (any, json.RawMessage, error) {
	if err != nil {
		return nil, nil, err
	}
	return &page.Items[0], raw(&page.Items[0]), nil
}

// one returns a resource, its Raw and the error.
func one[T any](got *T, err error, raw func(*T) json.RawMessage) (any, json.RawMessage, error) {
	if err != nil {
		return nil, nil, err
	}
	return got, raw(got), nil
}

func noRaw[T any](*T) json.RawMessage { return nil }

//nolint:maintidx // a table
func placesOfMembers() []place {
	type (
		ctx    = context.Context
		client = *gateway.Client
	)
	rawTransaction := func(t *gateway.Transaction) json.RawMessage { return t.Raw }
	rawTransfer := func(t *gateway.Transfer) json.RawMessage { return t.Raw }
	rawCustomer := func(c *gateway.Customer) json.RawMessage { return c.Raw }
	rawSubscription := func(s *gateway.Subscription) json.RawMessage { return s.Raw }
	transactionShape, itemShape := reflect.TypeFor[gateway.Transaction](), reflect.TypeFor[gateway.ListedItem]()
	transferShape, customerShape := reflect.TypeFor[gateway.Transfer](), reflect.TypeFor[gateway.ReceivedCustomer]()
	subscriptionShape := reflect.TypeFor[gateway.Subscription]()
	payout := gateway.TransferParams{PixKeyType: gateway.PixKeyCPF, PixKeyValue: "52998224725", Amount: 150000, ExternalRef: "payout-2001"}
	createTransaction := func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
		got, err := c.Transactions.Create(x, pixOrder(), o...)
		return one(got, err, rawTransaction)
	}
	listTransactions := func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
		page, err := c.Transactions.List(x, gateway.TransactionListParams{}, o...)
		return first(page, err, rawTransaction)
	}
	listTransfers := func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
		page, err := c.Transfers.List(x, gateway.TransferListParams{}, o...)
		return first(page, err, rawTransfer)
	}
	listSubscriptions := func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
		page, err := c.Subscriptions.List(x, gateway.SubscriptionListParams{}, o...)
		return first(page, err, rawSubscription)
	}
	return []place{
		{
			"transactions.create", "transactions/create.response.json", 201, &spec.TransactionMembers, transactionShape, true,
			[]string{"method"},
			createTransaction,
		},
		{
			"transactions.get", "transactions/get.response.json", 200, &spec.TransactionMembers, transactionShape, false, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Transactions.Get(x, orderID, o...)
				return one(got, err, rawTransaction)
			},
		},
		{
			"transactions.list", "transactions/list.response.json", 200, &spec.TransactionMembers, itemShape, false, nil, listTransactions,
		},
		{
			"transactions.list, live", "transactions/list.live.response.json", 200, &spec.TransactionMembers, itemShape, false, nil, listTransactions,
		},
		{
			"transactions.refund", "transactions/refund.response.json", 200, &spec.RefundMembers, reflect.TypeFor[gateway.Refund](), true, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Transactions.Refund(x, orderID, gateway.RefundParams{Amount: 500}, o...)
				return one(got, err, noRaw)
			},
		},
		{
			"transactions.update_delivery", "transactions/update_delivery.response.json", 200, &spec.DeliveryMembers, reflect.TypeFor[gateway.Delivery](), true, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Transactions.UpdateDelivery(x, orderID, gateway.DeliveryParams{TrackingCode: "BR1"}, o...)
				return one(got, err, noRaw)
			},
		},
		{
			"transactions.set_sandbox_status", "transactions/set_sandbox_status.response.json", 200, &spec.SandboxMembers, reflect.TypeFor[gateway.SandboxResponse](), true, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Transactions.SetSandboxStatus(x, orderID, gateway.SandboxStatusParams{Status: gateway.TransactionPaid}, o...)
				return one(got, err, noRaw)
			},
		},
		{
			"transfers.create", "transfers/create.response.json", 201, &spec.TransferMembers, transferShape, true,
			[]string{"pix_key", "pix_key_type"},
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Transfers.Create(x, payout, o...)
				return one(got, err, rawTransfer)
			},
		},
		{
			"transfers.get", "transfers/get.response.json", 200, &spec.TransferMembers, transferShape, false, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Transfers.Get(x, orderID, o...)
				return one(got, err, rawTransfer)
			},
		},
		{"transfers.list", "transfers/list.response.json", 200, &spec.TransferMembers, transferShape, false, nil, listTransfers},
		{"transfers.list, live", "transfers/list.live.response.json", 200, &spec.TransferMembers, transferShape, false, nil, listTransfers},
		{
			"customers.create", "customers/create.response.json", 201, &spec.CustomerMembers, customerShape, true,
			[]string{"email"},
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Customers.Create(x, customerParams(), o...)
				return one(got, err, rawCustomer)
			},
		},
		{
			"customers.get", "customers/get.response.json", 200, &spec.CustomerMembers, customerShape, false, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Customers.Get(x, mariaID, o...)
				return one(got, err, rawCustomer)
			},
		},
		{
			"customers.list", "customers/list.response.json", 200, &spec.CustomerMembers, customerShape, false, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				page, err := c.Customers.List(x, gateway.CustomerListParams{}, o...)
				return first(page, err, rawCustomer)
			},
		},
		{
			"subscriptions.create", "subscriptions/create.response.json", 201, &spec.SubscriptionMembers, subscriptionShape, true,
			[]string{"customerId", "paymentMethod", "interval", "intervalCount", "trialEnd", "currentPeriodStart"},
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Subscriptions.Create(x, cardSubscription(), o...)
				return one(got, err, rawSubscription)
			},
		},
		{
			"subscriptions.update", "subscriptions/update.response.json", 200, &spec.SubscriptionMembers, subscriptionShape, true, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				params := gateway.SubscriptionUpdateParams{FailurePolicy: gateway.RetryThenCancel}
				got, err := c.Subscriptions.Update(x, "s", params, o...)
				return one(got, err, rawSubscription)
			},
		},
		{
			"subscriptions.get", "subscriptions/get.response.json", 200, &spec.SubscriptionMembers, subscriptionShape, false, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Subscriptions.Get(x, "s", o...)
				return one(got, err, rawSubscription)
			},
		},
		{
			"subscriptions.cancel", "subscriptions/cancel.response.json", 200, &spec.SubscriptionMembers, subscriptionShape, true, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.Subscriptions.Cancel(x, "s", gateway.SubscriptionCancelParams{}, o...)
				return one(got, err, rawSubscription)
			},
		},
		{"subscriptions.list", "subscriptions/list.response.json", 200, &spec.SubscriptionMembers, subscriptionShape, false, nil, listSubscriptions},
		{"subscriptions.list, live", "subscriptions/list.live.response.json", 200, &spec.SubscriptionMembers, subscriptionShape, false, nil, listSubscriptions},
		{
			"checkout_links.create", "checkout_links/create.response.json", 201, &spec.CheckoutLinkMembers, reflect.TypeFor[gateway.CheckoutLink](), true, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.CheckoutLinks.Create(x, gateway.CheckoutLinkParams{Amount: 4990}, o...)
				return one(got, err, func(l *gateway.CheckoutLink) json.RawMessage { return l.Raw })
			},
		},
		{
			"checkout_sessions.open", "checkout_sessions/open.response.json", 200, &spec.CheckoutSessionMembers, reflect.TypeFor[gateway.CheckoutSession](), false, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.CheckoutSessions.Open(x, "mugs", o...)
				return one(got, err, func(s *gateway.CheckoutSession) json.RawMessage { return s.Raw })
			},
		},
		{
			"checkout_sessions.update", "checkout_sessions/update.response.json", 200, &spec.CheckoutSessionStateMembers, reflect.TypeFor[gateway.CheckoutSessionState](), true, nil,
			func(x ctx, c client, o ...gateway.RequestOption) (any, json.RawMessage, error) {
				got, err := c.CheckoutSessions.Update(x, "mugs", gateway.NewSecret("t"), gateway.CheckoutSessionParams{PaymentMethod: gateway.Pix}, o...)
				return one(got, err, noRaw)
			},
		},
	}
}

// kind is what a member is documented as.
type kind string

const (
	aText    kind = "text"
	anEnum   kind = "one of a set of texts"
	anAmount kind = "integer"
	aFlag    kind = "boolean"
	aTime    kind = "time"
	anObject kind = "object"
	aList    kind = "list of objects"
	texts    kind = "list of texts"
	integers kind = "list of integers"
	anything kind = "anything"
)

// kindsIn adds the members of a type and of the types within it, by path.
func kindsIn(t reflect.Type, path string, into map[string]kind) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			kindsIn(f.Type, path, into)
			continue
		case name == "-" || name == "" || !f.IsExported():
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		if _, known := into[at]; known && !f.Anonymous && t.Name() != "ReceivedCustomer" { // an outer field replaces it
			continue
		}
		inner, k := kindOf(f.Type)
		into[at] = k
		if inner != nil {
			kindsIn(inner, at, into)
		}
	}
}

// kindOf returns the kind of a type, and the struct within an object or a list.
func kindOf(t reflect.Type) (inner reflect.Type, k kind) {
	switch {
	case t == reflect.TypeFor[gateway.Timestamp]():
		return nil, aTime
	case t == reflect.TypeFor[gateway.Metadata](), t == reflect.TypeFor[gateway.Secret](), t == reflect.TypeFor[gateway.ClientSecret]():
		return nil, anything
	case t.Kind() == reflect.Pointer:
		return kindOf(t.Elem())
	case t.Kind() == reflect.Struct:
		return t, anObject
	case t.Kind() == reflect.Slice:
		if inner, _ := kindOf(t.Elem()); inner != nil {
			return inner, aList
		}
		if t.Elem().Kind() == reflect.String {
			return nil, texts
		}
		return nil, integers
	case t.Kind() == reflect.Bool:
		return nil, aFlag
	case t.Kind() == reflect.String && t.PkgPath() != "" && t.NumMethod() == 0:
		return nil, anEnum
	case t.Kind() == reflect.String:
		return nil, aText
	default:
		return nil, anAmount
	}
}

// odd are the values that every member is given. Each says of which kinds it can be read.
var odd = []struct {
	name, json string
	readAs     []kind
	strictAs   []kind // of a strict member
}{
	{"number", `7`, []kind{aText, anAmount, aTime}, []kind{aText, anEnum, anAmount}},
	{"text", `"soon"`, []kind{aText, anEnum}, []kind{aText, anEnum}},
	{"text of an integer", `"12"`, []kind{aText, anEnum, anAmount, aTime}, []kind{aText, anEnum, anAmount}},
	{"object", `{"zzz":1}`, []kind{anObject}, []kind{anObject}},
	{"list", `[{"zzz":1}]`, []kind{aList}, []kind{aList}},
	{"list of texts", `["a"]`, []kind{texts}, nil},
	{"boolean", `true`, []kind{aText, aFlag}, nil},
	{"fraction", `1.5`, []kind{aText, aTime}, nil},
	{"null", `null`, allKinds, allKinds},
	{"absent", "", allKinds, allKinds},
}

var allKinds = []kind{aText, anEnum, anAmount, aFlag, aTime, anObject, aList, texts, integers}

// edit returns data with the member at a path set to a value or, without one, removed. What
// contains it is added if it is missing.
func edit(t *testing.T, data any, path, value string, kinds map[string]kind) {
	t.Helper()
	names := strings.Split(path, ".")
	at := data.(map[string]any)
	for i, name := range names[:len(names)-1] {
		next := at[name]
		if list, ok := next.([]any); ok && len(list) > 0 {
			next = list[0]
		}
		object, ok := next.(map[string]any)
		if !ok {
			object = map[string]any{}
			at[name] = object
			if kinds[strings.Join(names[:i+1], ".")] == aList {
				at[name] = []any{object}
			}
		}
		at = object
	}
	name := names[len(names)-1]
	if value == "" {
		delete(at, name)
		return
	}
	at[name] = json.RawMessage(value)
}

// response returns the response of a place, and its resource.
func (p *place) body(t *testing.T) (body map[string]any, resource any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(golden(t, p.response), &body))
	resource = body["data"]
	if object, ok := resource.(map[string]any); ok && strings.Contains(p.name, ".list") {
		resource = object["data"]
	}
	if list, ok := resource.([]any); ok {
		resource = list[0]
	}
	return body, resource
}

// Every member of every response is sent in every type. A member that decides about money
// is an error, so that a write has an unknown outcome, and a read fails. Any other does not fail the call: it is left out, stays in Raw and is reported.
func TestMembersOfAnotherType(t *testing.T) { //nolint:tparallel // "places" ends when its subtests have, whose cases are then counted
	t.Parallel()
	var count struct {
		sync.Mutex
		cases, errors, leftOut, read int
	}
	strictSeen := map[string]bool{}
	t.Run("places", func(t *testing.T) {
		for _, p := range placesOfMembers() {
			kinds := map[string]kind{}
			kindsIn(p.shape, "", kinds)
			for path := range kinds {
				strictSeen[p.table.Resource+" "+path] = true
			}
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				for i, path := range slices.Sorted(maps.Keys(kinds)) {
					if testing.Short() && !explore.Sampled(i) {
						continue
					}
					for _, o := range odd {
						outcome := p.check(t, path, kinds, o.name, o.json, o.readAs, o.strictAs)
						count.Lock()
						count.cases++
						switch outcome {
						case "error":
							count.errors++
						case "left out":
							count.leftOut++
						default:
							count.read++
						}
						count.Unlock()
					}
				}
			})
		}
	})
	t.Logf("%d cases: %d errors of strict members, %d left out, %d read", count.cases, count.errors, count.leftOut, count.read)
	if !testing.Short() {
		assert.Greater(t, count.errors, 500)
		assert.Greater(t, count.leftOut, 500)
	}
	for _, m := range spec.ResponseMembers() {
		switch m.Resource {
		case spec.PageMembers.Resource, spec.PixPaymentMembers.Resource, spec.PaymentTokenMembers.Resource:
			continue // see TestMembersOfAPage, and package legacy
		}
		for _, path := range slices.Concat(m.Strict, m.Whole) {
			if !strings.Contains(path, "payment.") || m == &spec.TransactionMembers {
				assert.True(t, strictSeen[m.Resource+" "+path], "the %s has no member %s", m.Resource, path)
			}
		}
	}
}

func (p *place) check(t *testing.T, path string, kinds map[string]kind, name, value string, readAs, strictAs []kind) string {
	t.Helper()
	about := fmt.Sprintf("%s: %s is a %s", p.name, path, name)
	body, resource := p.body(t)
	edit(t, resource, path, value, kinds)
	text, err := json.Marshal(body)
	require.NoError(t, err)
	var logged strings.Builder
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	client := clientOf(t, play(reply(p.status, string(text))), gateway.WithMaxAttempts(1), gateway.WithLogger(logger))
	var response gateway.Response
	got, raw, err := p.run(t.Context(), client, gateway.ResponseInto(&response))

	k, strict := kinds[path], p.table.IsStrict(path)
	accepts := readAs
	if strict {
		accepts = strictAs
	}
	readable := k == anything || slices.Contains(accepts, k)
	if strict {
		if !readable {
			if p.write {
				require.ErrorIs(t, err, gateway.ErrOutcomeUnknown, about)
			} else {
				require.ErrorIs(t, err, gateway.ErrServer, about)
				require.ErrorContains(t, err, "unexpected type", about)
			}
			return "error"
		}
		return "read" // another id or amount may well be an error
	}
	if readable && slices.Contains(p.compared, path) {
		return "read" // and differs from the params
	}
	require.NoError(t, err, about)
	require.NotNil(t, got, about)
	if value != "" && raw != nil {
		assert.Contains(t, compact(raw), compact([]byte(value)), about)
	}
	if readable {
		assert.Empty(t, response.Unread, about)
		return "read"
	}
	member := path
	for _, whole := range p.table.Whole {
		if strings.HasPrefix(path, whole+".") {
			member = whole
		}
	}
	assert.Equal(t, []string{member}, response.Unread, about)
	assert.Equal(t, 1, strings.Count(logged.String(), "member="+member), about)
	if v, ok := valueAt(reflect.ValueOf(got), member); ok && p.shape != reflect.TypeFor[gateway.ListedItem]() {
		assert.True(t, isLeftOut(v), "%s: is %v", about, v)
	}
	return "left out"
}

func compact(text []byte) string {
	return strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(string(text))
}

// valueAt returns the field for a path, if the result has one.
func valueAt(v reflect.Value, path string) (reflect.Value, bool) {
	for name := range strings.SplitSeq(path, ".") {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice {
			switch {
			case v.Kind() == reflect.Slice && v.Len() == 0, v.Kind() == reflect.Pointer && v.IsNil():
				return v, false
			case v.Kind() == reflect.Slice:
				v = v.Index(0)
			default:
				v = v.Elem()
			}
		}
		found := false
		for f, field := range v.Fields() {
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
				v, found = field, true
				break
			}
		}
		if !found {
			return v, false
		}
	}
	return v, true
}

// isLeftOut reports whether a member has no value, or is a list whose elements have none.
func isLeftOut(v reflect.Value) bool {
	if ts, ok := v.Interface().(gateway.Timestamp); ok {
		return ts.Unreadable()
	}
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			if !v.Index(i).IsZero() {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

// The cursors and totals of a list must be readable, or items would be missed.
func TestMembersOfAPage(t *testing.T) {
	t.Parallel()
	kinds := map[string]kind{
		"total": anAmount, "next_cursor": aText, "prev_cursor": aText,
		"metadata": anObject, "metadata.page": anAmount, "metadata.limit": anAmount, "metadata.total": anAmount,
		"requestId": aText,
	}
	cases := 0
	for _, nested := range []bool{false, true} {
		for path, k := range kinds {
			if nested && (strings.HasPrefix(path, "metadata") || path == "requestId") {
				continue
			}
			for _, o := range odd {
				page := map[string]any{}
				edit(t, page, path, o.json, kinds)
				body := map[string]any{"success": true, "data": []any{map[string]any{"id": "tx-1"}}}
				if nested {
					page["data"] = body["data"]
					body["data"] = page
				} else {
					maps.Copy(body, page)
				}
				text, err := json.Marshal(body)
				require.NoError(t, err)
				_, err = clientOf(t, play(reply(200, string(text))), gateway.WithMaxAttempts(1)).Transactions.List(t.Context(), gateway.TransactionListParams{})
				about := fmt.Sprintf("%s, nested %t, is a %s", path, nested, o.name)
				if !spec.PageMembers.IsStrict(path) || slices.Contains(o.strictAs, k) {
					require.NoError(t, err, about)
				} else {
					require.ErrorIs(t, err, gateway.ErrServer, about)
				}
				cases++
			}
		}
	}
	t.Logf("%d cases", cases)
}

// A member is logged once per client, and a client's copies share what was logged.
func TestALeftOutMemberIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	response := reply(200, `{"success":true,"data":{"id":"tx-1","status":"paid","fee":12,"updated_at":"soon"}}`)
	client := clientOf(t, play(response, response, response), gateway.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	for range 2 {
		_, err := client.Transactions.Get(t.Context(), "tx-1")
		require.NoError(t, err)
	}
	again, err := client.With()
	require.NoError(t, err)
	tx, err := again.Transactions.Get(t.Context(), "tx-1")
	require.NoError(t, err)
	assert.True(t, tx.UpdatedAt.Unreadable())
	assert.Equal(t, 2, strings.Count(logged.String(), "level=WARN"), logged.String())
	assert.Equal(t, 1, strings.Count(logged.String(), `member=fee is="a number"`), logged.String())
	assert.Equal(t, 1, strings.Count(logged.String(), "member=updated_at"), logged.String())
	assert.NotContains(t, logged.String(), "soon")
}

// If a gateway returns an older resource with the reference, a member with which the create
// compares it must be readable: otherwise the buyer's payout could have gone to another key.
func TestAnExistingResourceMustBeComparable(t *testing.T) {
	t.Parallel()
	params := gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com", Amount: 1000, ExternalRef: "payout-1"}
	body := func(key string) string {
		return `{"success":true,"data":{"id":"tr-1","status":"paid","amount":"1000","external_ref":"payout-1","pix_key_type":"EMAIL","pix_key":` + key + `}}`
	}
	for _, status := range []int{http.StatusOK, http.StatusCreated} {
		got, err := clientOf(t, play(reply(status, body(`"ana@example.com"`)))).Transfers.Create(t.Context(), params)
		require.NoError(t, err)
		assert.Equal(t, "tr-1", got.ID)
	}
	_, err := clientOf(t, play(reply(http.StatusCreated, body(`{"email":"bob@example.com"}`)))).Transfers.Create(t.Context(), params)
	require.NoError(t, err, "a 201 is new")
	_, err = clientOf(t, play(reply(http.StatusOK, body(`{"email":"bob@example.com"}`)))).Transfers.Create(t.Context(), params)
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	require.ErrorContains(t, err, "whose pix_key can't be read")
	e, ok := errors.AsType[*gateway.Error](err)
	require.True(t, ok)
	assert.Equal(t, "tr-1", e.ResourceID)
	existing, ok := e.Existing.(*gateway.Transfer)
	require.True(t, ok)
	assert.Equal(t, "tr-1", existing.ID)
	assert.NotContains(t, err.Error(), "bob")
}

// A key expires without notice. Every call fails then, and one line of the log says why.
func TestARejectedKeyIsLoggedOnce(t *testing.T) {
	t.Parallel()
	rejected := reply(401, `{"title":"Unauthorized","status":401,"code":"UNAUTHORIZED"}`)
	accepted := reply(200, `{"success":true,"data":{"id":"tx-1","status":"paid"}}`)
	proxy := reply(401, `<html>sign in</html>`)
	var logged strings.Builder
	client := clientOf(t, play(proxy, rejected, rejected, accepted, rejected, rejected),
		gateway.WithMaxAttempts(1), gateway.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	get := func(c *gateway.Client) { _, _ = c.Transactions.Get(t.Context(), "tx-1") }
	count := func() int { return strings.Count(logged.String(), "the gateway rejects the key") }
	get(client)
	assert.Zero(t, count(), "the 401 of a proxy is not the gateway's")
	get(client)
	copied, err := client.With()
	require.NoError(t, err)
	get(copied)
	assert.Equal(t, 1, count(), logged.String())
	get(client)
	assert.Equal(t, 1, strings.Count(logged.String(), "accepts the key again"))
	_, _ = client.CheckoutSessions.Update(t.Context(), "mugs", gateway.NewSecret("old"), gateway.CheckoutSessionParams{PaymentMethod: gateway.Pix})
	assert.Equal(t, 1, count(), "this is about the session's token")
	get(client)
	assert.Equal(t, 2, count())
	assert.NotContains(t, logged.String(), testKey)
}

// FuzzOddCreate checks a 201 with any member of any value: it does not panic, and a success has
// what decides about money exactly as it was sent.
func FuzzOddCreate(f *testing.F) {
	for _, name := range []string{
		"id", "status", "amount", "currency", "external_ref", "base_price", "paid_amount", "fee", "products", "next_action", "updated_at",
		"informations", "buyer", "pix", "splits", "installments", "metadata", "method", "new",
	} {
		for _, value := range []string{`7`, `"soon"`, `"12"`, `{"net_amount":"x"}`, `[{"name":1}]`, `true`, `null`, `1.5`, `""`, `[]`, `1e400`, `"\ud800"`, `{"a":1,"a":2}`} {
			f.Add(name, value, true)
		}
	}
	f.Fuzz(func(t *testing.T, name, value string, first bool) {
		if !json.Valid([]byte(value)) {
			return
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return
		}
		member := string(quoted) + ":" + value
		rest := `"id":"tx-1","status":"pending","amount":15990,"currency":"BRL","method":"pix","external_ref":"order-1001"`
		data := rest + "," + member
		if first {
			data = member + "," + rest
		}
		client := clientOf(t, play(reply(201, `{"success":true,"data":{`+data+`}}`)), gateway.WithMaxAttempts(1))
		tx, err := client.Transactions.Create(t.Context(), pixOrder())
		if err != nil {
			require.ErrorIs(t, err, gateway.ErrOutcomeUnknown, "something was created: %s", data)
			assert.True(t, spec.TransactionMembers.IsStrict(name) || name == "method", "%s failed a create: %s", name, data)
			return
		}
		assert.NotEmpty(t, tx.ID)
		assert.True(t, tx.AmountIs(15990) || tx.Amount == 0, "%s: %d", data, tx.Amount)
		assert.Contains(t, []gateway.Currency{"", gateway.BRL}, tx.Currency)
		encoded, err := json.Marshal(tx)
		require.NoError(t, err)
		var again gateway.Transaction
		require.NoError(t, wire.Decode(encoded, &again), "%s", encoded)
		assert.Equal(t, tx.Amount, again.Amount)
	})
}
