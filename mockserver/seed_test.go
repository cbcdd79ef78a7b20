package mockserver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

const sampleSeed = "../docs/shop.seed.json"

// The guide's sample from a merchant's point of view.
func TestTheSampleSeedFileFillsAShop(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		gw := mockserver.Run(t, mockserver.WithSeedFile(sampleSeed), mockserver.WithDialect(dialect), mockserver.WithLenient())
		ids, client := gw.Seeded(), gw.Client()
		now := gw.Clock.Now()
		require.Len(t, ids, 10)
		assert.Empty(t, gw.Requests.All(), "seeding makes no request")
		states := map[string]string{}
		for _, name := range []string{"waiting", "returned", "disputed"} {
			tx, err := client.Transactions.Get(t.Context(), ids[name])
			require.NoError(t, err)
			states[name] = string(tx.Status)
			if name == "returned" {
				assert.EqualValues(t, 4990, tx.RefundedAmount)
				assert.WithinDuration(t, now.Add(-10*24*time.Hour), tx.CreatedAt.Time, 0)
				assert.Equal(t, "João Lima", tx.Buyer.Name)
			}
		}
		for _, name := range []string{"member", "late"} {
			sub, err := client.Subscriptions.Get(t.Context(), ids[name])
			require.NoError(t, err)
			states[name] = string(sub.Status)
			if name == "member" {
				assert.Len(t, sub.Transactions, 4, "the first charge and three renewals")
				assert.True(t, sub.CurrentPeriodEnd.Time.After(now))
			}
		}
		transfer, err := client.Transfers.Get(t.Context(), ids["payout"])
		require.NoError(t, err)
		states["payout"] = string(transfer.Status)
		assert.Equal(t, map[string]string{
			"waiting": "pending", "returned": "partially_refunded", "disputed": "chargedback",
			"member": "active", "late": "past_due", "payout": "paid",
		}, states)
		require.ErrorContains(t, gw.Checkout.Expire(ids["old-sale"]), "inactive")

		list, err := gw.Account("sk_test_marketplace").Client().Transactions.List(t.Context(), gateway.TransactionListParams{})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		assert.Equal(t, gateway.TransactionPaid, list.Items[0].Status)

		assert.Empty(t, gw.Webhooks.Deliveries(), "no webhook is sent")
		require.NoError(t, gw.Clock.Advance(24*time.Hour), "and time advances")
		tx, err := client.Transactions.Get(t.Context(), ids["waiting"])
		require.NoError(t, err)
		assert.Equal(t, gateway.TransactionExpired, tx.Status)
	}
}

func seeded(t *testing.T, text string, options ...mockserver.Option) (*mockserver.Server, map[string]string, error) {
	t.Helper()
	gw := mockserver.Run(t, options...)
	ids, err := gw.Seed(strings.NewReader(text))
	return gw, ids, err
}

func TestSeedingReachesEveryState(t *testing.T) {
	t.Parallel()
	pix := `"amount":1000,"method":"pix","buyer":{"name":"Ana","email":"ana@shop.test"},"products":[{"name":"Mug","price":1000}]`
	voucher := `"amount":1000,"method":"voucher","buyer":{"name":"Ana","email":"ana@shop.test","address":{"street":"R. A","number":"1","city":"São Paulo","state":"SP","zipCode":"01001000","country":"BR"}},"products":[{"name":"Mug","price":1000}]`
	card := func(token string) string {
		return strings.Replace(pix, `"pix"`, `"credit_card","token":"`+token+`"`, 1)
	}
	transfer := `"amount":1000,"pix_key_type":"EMAIL","pix_key_value":"ana@shop.test"`
	sub := `"customer_id":"@c","amount":500,"interval":"month"`
	for entry, states := range map[string]string{
		"transactions " + pix:                                                            "pending paid expired canceled refunded partially_refunded",
		"transactions " + voucher:                                                        "pending paid expired canceled refunded",
		"transactions " + card("pgct_ok"):                                                "pending paid canceled refused refunded partially_refunded chargedback",
		"transactions " + card("pgct_captured"):                                          "captured refunded partially_refunded chargedback",
		"transactions " + card("pgct_3ds"):                                               "paid refused canceled",
		"transactions " + card("pgct_refused"):                                           "refused",
		"transactions " + pix + `,"at":"-2d"`:                                            "paid expired canceled refunded",
		"transfers " + transfer:                                                          "pending in_analysis processing paid error cancelled",
		"transfers " + transfer + `,"at":"-1h"`:                                          "paid error cancelled",
		"subscriptions " + sub + `,"token":"pgct_ok"`:                                    "active cancel_scheduled",
		"subscriptions " + sub + `,"token":"pgct_ok","at":"-33d"`:                        "active past_due canceled cancel_scheduled",
		"subscriptions " + sub + `,"token":"pgct_ok","trial_end":"2027-02-01T00:00:00Z"`: "trialing cancel_scheduled",
		"subscriptions " + sub + `,"token":"pgct_refused"`:                               "incomplete canceled",
		"subscriptions " + sub + `,"payment_method":"pix_automatic"`:                     "incomplete active canceled",
		"subscriptions " + sub + `,"token":"pgct_ok","at":"-40d","fail_next":9,"failure_policy":"immediate_cancel"`: "canceled",
		"subscriptions " + sub + `,"token":"pgct_ok","at":"-400d"`:                                                  "active past_due canceled cancel_scheduled",
		"subscriptions " + strings.Replace(sub, "month", "day", 1) + `,"token":"pgct_ok","at":"-700d"`:              "active past_due canceled",
		`links "amount":100,"title":"A"`: "active expired inactive",
	} {
		section, body, _ := strings.Cut(entry, " ")
		for state := range strings.FieldsSeq(states) {
			text := fmt.Sprintf(`{"customers":[{"as":"c","name":"Ana","email":"ana@shop.test"}],"%s":[{"as":"x","state":"%s",%s}]}`, section, state, body)
			gw, ids, err := seeded(t, text)
			require.NoError(t, err, text)
			var is string
			switch section {
			case "transactions":
				tx, err := gw.Client().Transactions.Get(t.Context(), ids["x"])
				require.NoError(t, err)
				is = string(tx.Status)
			case "transfers":
				tr, err := gw.Client().Transfers.Get(t.Context(), ids["x"])
				require.NoError(t, err)
				is = string(tr.Status)
			case "subscriptions":
				s, err := gw.Client().Subscriptions.Get(t.Context(), ids["x"])
				require.NoError(t, err)
				is = string(s.Status)
			default:
				is = state // Run has compared it
			}
			assert.Equal(t, state, is, entry)
		}
	}
}

// Live states that can only be set in the sandbox.
func TestSeedingTheLiveDialectsOwnStates(t *testing.T) {
	t.Parallel()
	text := `{"transactions":[{"as":"x","state":"in_protest","amount":1000,"method":"credit_card","token":"pgct_ok",
		"buyer":{"name":"Ana","email":"ana@shop.test"},"products":[{"name":"Mug","price":1000}]}]}`
	gw, ids, err := seeded(t, text, mockserver.WithDialect(mockserver.Live))
	require.NoError(t, err)
	tx, err := gw.Client().Transactions.Get(t.Context(), ids["x"])
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionInProtest, tx.Status)
	_, _, err = seeded(t, text)
	require.ErrorContains(t, err, `transactions[0].state: "in_protest" can't be reached; the possible states are canceled, chargedback, paid, partially_refunded, pending, refunded, refused`)
}

func TestAWrongSeedFileSaysWhereAndChangesNothing(t *testing.T) {
	t.Parallel()
	good := `{"as":"ana","name":"Ana","email":"ana@shop.test"}`
	tx := func(more string) string {
		return `{"amount":1000,"method":"pix","products":[{"name":"Mug","price":1000}],"buyer":{"name":"A","email":"a@shop.test"}` + more + `}`
	}
	for text, want := range map[string]string{
		"":         "seed:1:1: is not JSON",
		"{":        "is not JSON",
		"[]":       "seed:1:1: must be an object",
		"{}\n\n x": "seed:3:2: is not JSON",
		"{} {}":    "more than one value",
		`{"customers":[` + good + `],"customers":[]}`: "duplicate",
		`{"customer":[]}`: "seed:1:2: customer: is unknown; must be one of $schema, webhooks, accounts, customers, links",
		"{\"customers\":[\n  " + good + ",\n  {\"name\":\"B\",\n   \"email\":\"b\"}\n]}": "seed:4:4: customers[1].email: must be an e-mail address",
		"{\"customers\":[\n" + good + ",\n{\"name\":\"B\"}]}":                            "seed:3:1: customers[1].email: ",
		`{"customers":[{"name":"B","emial":"b@shop.test"}]}`:                             "customers[0].emial: is unknown",
		`{"customers":[{"name":"B","email":"b@shop.test","state":"active"}]}`:            "customers[0].state: is unknown",
		`{"customers":7}`:                 "customers: must be an array",
		`{"customers":[7]}`:               "customers[0]: must be an object",
		`{"webhooks":1}`:                  "webhooks: must be true or false",
		`{"accounts":[{"customers":[]}]}`: "accounts[0].key: must be the account's API key",
		`{"accounts":[{"key":"abc","customers":[` + good + `]}]}`:                                                          "accounts[0].key: ",
		`{"customers":[` + good + `,` + good + `]}`:                                                                        "customers[1].as: is the name of an earlier entry",
		`{"transactions":[` + tx(`,"state":"chargedback"`) + `]}`:                                                          `transactions[0].state: "chargedback" can't be reached; the possible states are canceled, expired, paid, partially_refunded, pending, refunded`,
		`{"transactions":[` + tx(`,"at":"-3d","state":"pending"`) + `]}`:                                                   `"pending" can't be reached; the possible states are canceled, expired, paid`,
		`{"transactions":[` + tx(`,"refunded_amount":5`) + `]}`:                                                            `transactions[0].refunded_amount: is allowed only with the state "partially_refunded"`,
		`{"transactions":[` + tx(`,"at":"1d"`) + `]}`:                                                                      "transactions[0].at: must not be after the time of the virtual clock",
		`{"transactions":[` + tx(`,"at":"soon"`) + `]}`:                                                                    "transactions[0].at: must be a negative duration",
		`{"transactions":[` + tx(`,"external_ref":"a"`) + `,` + tx(`,"external_ref":"a"`) + `]}`:                           "transactions[1]: A transaction with this external reference already exists (status 409)",
		`{"transactions":[` + strings.Replace(tx(""), `"price":1000`, `"price":-1`, 1) + `]}`:                              "transactions[0].products[0].price: must be",
		`{"transactions":[` + strings.Replace(tx(""), `"price"`, `"prize"`, 1) + `]}`:                                      "transactions[0].products[0].prize: is unknown; must be one of name, price",
		`{"transactions":[{"amount":1000,"method":"pix","buyer":{"id":"@bob"},"products":[{"name":"Mug","price":1000}]}]}`: "transactions[0].buyer.id: @bob is not the name of an entry",
		`{"links":[{"amount":-5}]}`:                                                                                        "links[0].amount: must be",
		`{"transactions":[` + strings.Replace(tx(""), `"pix"`, `"credit_card","token":"4111111111111111"`, 1) + `]}`:       "transactions[0]",
	} {
		gw := mockserver.Run(t, mockserver.WithSeed(1))
		before, err := gw.Snapshot()
		require.NoError(t, err)
		if strings.HasPrefix(text, "{\"") && !strings.HasPrefix(text, `{"customer`) && !strings.Contains(text, `"customers"`) {
			text = strings.TrimSuffix(text, "}") + `,"customers":[` + good + `]}`
		}
		ids, err := gw.Seed(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "4111111111111111")
		assert.Nil(t, ids)
		assert.Nil(t, gw.Seeded())
		after, err := gw.Snapshot()
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after), text)
	}
}

func TestASeedFileWithManyFaultsNamesThemInTheOrderOfItsLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.json")
	text := "{\n\"transfers\": [{\"amount\": 0, \"pix_key_type\": \"EMAIL\", \"pix_key_value\": \"x@shop.test\"}],\n\"customers\": [\n{\"as\": \"a\", \"name\": \"A\", \"email\": \"a\"}],\n" +
		"\"subscriptions\": [{\"customer_id\": \"@a\", \"amount\": 0, \"interval\": \"month\", \"token\": \"pgct_ok\"}]}"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := mockserver.New(mockserver.WithSeedFile(path))
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 3, err)
	assert.Equal(t, "mockserver: shop.json:2:16: transfers[0].amount: must be at least 1", lines[0])
	assert.Contains(t, lines[1], "shop.json:4:26: customers[0].email: ")
	assert.Contains(t, lines[2], "shop.json:5:41: subscriptions[0].amount: ")
}

// Some editors begin a file with a byte order mark.
func TestASeedFileMayBeginWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(sampleSeed)
	require.NoError(t, err)
	gw := mockserver.Run(t)
	ids, err := gw.Seed(strings.NewReader("\uFEFF" + string(text)))
	require.NoError(t, err)
	assert.NotEmpty(t, ids)
	_, err = gw.Seed(strings.NewReader("\uFEFF{\"shop\":1}"))
	require.ErrorContains(t, err, "seed:1:2: shop: is unknown")
}

func TestSeedingSendsWebhooksOnlyIfAsked(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		gw := mockserver.Run(t, mockserver.WithSeed(1))
		var kinds []string
		gw.Webhooks.Send(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { kinds = append(kinds, r.Header.Get(webhookTimestamp)) }))
		_, err := gw.Seed(strings.NewReader(fmt.Sprintf(`{"webhooks":%v,"transactions":[{"state":"paid","amount":1000,"method":"pix",
			"notify_url":"http://127.0.0.1:1/","buyer":{"name":"A","email":"a@shop.test"},"products":[{"name":"Mug","price":1000}]}]}`, asked)))
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
		var got []string
		for _, d := range gw.Webhooks.Deliveries() {
			if d.Endpoint == "ep_1" {
				got = append(got, d.Kind)
			}
		}
		if asked {
			assert.Equal(t, []string{"transaction.created", "transaction.pending", "transaction.paid"}, got)
			assert.Len(t, kinds, 3)
		} else {
			assert.Empty(t, gw.Webhooks.Deliveries())
			assert.Empty(t, kinds)
		}
	}
}

const webhookTimestamp = "X-Gateway-Timestamp"

// A restart with -data and -seed-file keeps the seeded shop and its changes.
func TestADataFileIsSeededOnce(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	open := func() *mockserver.Server {
		gw, err := mockserver.New(mockserver.WithDataFile(data), mockserver.WithSeedFile(sampleSeed))
		require.NoError(t, err)
		return gw
	}
	gw := open()
	id := gw.Seeded()["waiting"]
	require.NotEmpty(t, id)
	require.NoError(t, gw.Transactions.Pay(id))
	require.NoError(t, gw.Close())
	gw = open()
	assert.Nil(t, gw.Seeded(), "it was not applied")
	tx, err := gw.Client().Transactions.Get(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionPaid, tx.Status)
	list, err := gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	assert.Equal(t, 9, list.Total, "three, and six charges of subscriptions")
	require.NoError(t, gw.Close())
}

// Seeding a server in use adds to it; its own resources and timers stay.
func TestSeedingAServerInUse(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithSeed(9))
	client := gw.Client()
	mine, err := client.Transactions.Create(t.Context(), order("mine"))
	require.NoError(t, err)
	file, err := os.Open(sampleSeed)
	require.NoError(t, err)
	ids, err := gw.Seed(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	assert.Equal(t, ids, gw.Seeded())
	_, err = gw.Seed(strings.NewReader(`{"customers":[{"as":"eve","name":"E","email":"e@shop.test"}]}`))
	require.NoError(t, err)
	assert.Len(t, gw.Seeded(), len(ids)+1)
	require.NoError(t, gw.Clock.Advance(25*time.Hour))
	tx, err := client.Transactions.Get(t.Context(), mine.ID)
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionExpired, tx.Status, "its timer is still there")
	_, err = client.Transactions.Create(t.Context(), order("order-1001"))
	require.ErrorIs(t, err, gateway.ErrDuplicate)
}

func TestSeedingByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw, key: "sk_test_mine"}
	assert.Empty(t, do[object](p, http.MethodGet, "/seed", ""))
	made := do[object](p, http.MethodPost, "/seed", `{"customers":[{"as":"ana","name":"Ana","email":"ana@shop.test"}]}`)
	id, _ := made["ana"].(string)
	_, err := gw.Account("sk_test_mine").Client().Customers.Get(t.Context(), id)
	require.NoError(t, err, "in the caller's account")
	assert.Equal(t, made, do[object](p, http.MethodGet, "/seed", ""))
	status, v := p.call(http.MethodPost, "/seed", "{\n\"customers\":[{\"name\":\"Ana\"}]}")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, v["detail"], "seed:2:14: customers[0].email: ")
}

// A seed file is applied completely or not at all, and creates only what a snapshot may
// contain.
func FuzzSeed(f *testing.F) {
	sample, err := os.ReadFile(sampleSeed)
	require.NoError(f, err)
	f.Add(sample)
	f.Add([]byte(`{"accounts":[{"key":"sk_test_a","customers":[{"as":"@","at":"-1d","name":null}]}],"webhooks":true}`))
	f.Add([]byte(`{"links":[{"amount":1,"title":"a","state":"expired"}],"transactions":[{"buyer":{"id":"@"}}]}`))
	f.Add([]byte("{\"customers\":[{\"name\":\"\xff\"}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		gw, err := mockserver.New(mockserver.WithSeed(1), mockserver.WithMemoryLimit(4<<20))
		require.NoError(t, err)
		defer func() { require.NoError(t, gw.Close()) }()
		before, err := gw.Snapshot()
		require.NoError(t, err)
		_, seedErr := gw.Seed(bytes.NewReader(text))
		after, err := gw.Snapshot()
		require.NoError(t, err)
		if seedErr == nil {
			require.NoError(t, gw.Restore(after), "what a seed file creates can be restored")
			return
		}
		require.Equal(t, string(before), string(after))
	})
}
