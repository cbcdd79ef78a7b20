package merchant

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// decision says what an erasure does with a member or a column.
type decision string

const (
	stays  decision = "stays" // an ID, an amount, a currency, a method, a state or a time
	goes   decision = "goes"
	code   decision = "code"   // it stays if it is a code
	notHis decision = "notHis" // it is not about a buyer
	inside decision = "inside" // its members have decisions
)

// decidedIn reads decisions, such as "stays id state; goes params".
func decidedIn(t *testing.T, text string) map[string]decision {
	t.Helper()
	all := make(map[string]decision)
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		d := decision(words[0])
		require.Contains(t, []decision{stays, goes, code, notHis, inside}, d)
		for _, name := range words[1:] {
			require.Empty(t, all[name], "%s has two decisions", name)
			all[name] = d
		}
	}
	return all
}

const watched = ` Earlier Watch Watch.Announced Watch.AnnouncedAt Watch.MissingSince`

// members are those of the records. What is not here has no decision.
var members = map[string]string{
	"charge": `stays Books Books.ID Books.Origin Books.CardCheck Books.TransactionID Books.Operation Books.State
		Books.Status Books.Currency Books.Requested Books.Asked Books.Amount Books.Paid Books.Fee Books.Refunded
		Books.Disputed Books.Assumed Books.Foreign Books.Accepted Books.Late Books.PaidAt Books.PeriodEnd
		Books.Attributed Books.ByOthers Books.Disputes Books.Reported Books.Problems Books.UpdatedAt Books.ReadAt
		Books.LowerSince Amount Currency Method Installments Call EndToEndID ExpiresAt Link` + watched + `;
		code Books.Reason; goes PixCode Voucher Challenge Buyer`,
	"refund": `stays ID Operation State Amount UpTo Full Moved AppliedAt Shown; code Reason`,
	"payout": `stays Payout Payout.ID Payout.TransferID Payout.Operation Payout.State Payout.Status Payout.Requested
		Payout.Amount Payout.Fee Payout.Out Payout.Moves Payout.PaidAt Payout.Reported Payout.Problems
		Payout.UpdatedAt Payout.ReadAt Payout.LowerSince` +
		watched + `; code Payout.Reason`,
	"subscription": `stays asked asked.Amount asked.Currency asked.Method asked.Interval asked.IntervalCount Books Books.ID
		Books.SubscriptionID Books.Operation Books.State Books.Status Books.PaidUntil Books.TrialEnd Books.Ends
		Books.Access Books.Access.Until Books.Access.Status Books.Access.Ends Books.AccessFacts Books.FailedAttempts
		Books.Reported Books.Problems Books.UpdatedAt Books.ReadAt CustomerID Canceling CancelCall Cancels PeriodEnd
		ReadAfter` + watched + `;
		code Books.Reason CancelReason; goes AuthorizationCode`,
	"problem": `stays Kind Record About Detail Times Over At`,
	// Account is of the call, and is not stored.
	"adoption": `stays Order Transaction Subscription Transfer ID Cost Call; notHis Account`,
}

// Each member of a record that is stored has a decision, and an erasure does what it says. So a new
// member can't be forgotten: it goes until it is listed in kept.go and here.
func TestEachMemberHasADecisionAboutItsErasure(t *testing.T) {
	t.Parallel()
	raised := func(r books.Raised) books.Raised { return keptProblems([]books.Raised{r})[0] }
	erases(t, "charge", func(r chargeRecord) chargeRecord { return r.kept() })
	erases(t, "refund", func(r books.Refund) books.Refund { return keptRefund(&r) })
	erases(t, "payout", func(r payoutRecord) payoutRecord { return r.kept() })
	erases(t, "subscription", func(r subscriptionRecord) subscriptionRecord { return r.kept() })
	erases(t, "adoption", func(r Adoption) Adoption { return r.kept() })
	erases(t, "problem", raised)
}

// erases checks what stays of a record whose members all have values.
func erases[R any](t *testing.T, name string, kept func(R) R) {
	t.Helper()
	decided := decidedIn(t, members[name])
	for _, text := range []string{"expired", "Zuleica Quintanilha"} {
		var full R
		fill(reflect.ValueOf(&full).Elem(), text)
		after := kept(full)
		found := make(map[string]bool)
		each(reflect.ValueOf(full), reflect.ValueOf(after), "", decided, func(path string, before, after reflect.Value) {
			found[path] = true
			require.False(t, before.IsZero(), "the test does not fill %s of a %s", path, name)
			switch d := decided[path]; d {
			case stays:
				assert.Equal(t, before.Interface(), after.Interface(), "%s of a %s", path, name)
			case code:
				assert.Equal(t, text == "expired", !after.IsZero(), "%s of a %s is %q", path, name, after)
			case goes, notHis:
				assert.True(t, after.IsZero(), "%s of a %s", path, name)
			default:
				assert.Fail(t, "no decision", "say in kept.go and in members whether %s of a %s may stay when its buyer is erased",
					path, name)
			}
		})
		for path := range decided {
			assert.True(t, found[path], "there is no %s of a %s any more", path, name)
		}
	}
}

// each calls visit for each member, and for those of members that stay and are structs of this package.
func each(
	before, after reflect.Value, path string, decided map[string]decision, visit func(path string, before, after reflect.Value),
) {
	for i := range before.NumField() {
		is := before.Type().Field(i)
		name := strings.TrimPrefix(path+"."+is.Name, ".")
		one, left := open(before.Field(i)), open(after.Field(i))
		if is.Type.Kind() == reflect.Struct && is.Type != reflect.TypeFor[time.Time]() && decided[name] == stays {
			visit(name, reflect.ValueOf(true), reflect.ValueOf(true))
			each(one, left, name, decided, visit)
			continue
		}
		visit(name, one, left)
	}
}

// open returns a value of which Interface may be called: an embedded member is not exported.
func open(v reflect.Value) reflect.Value {
	if v.CanInterface() {
		return v
	}
	shown := reflect.New(v.Type()).Elem()
	for i := range v.NumField() {
		shown.Field(i).Set(v.Field(i))
	}
	return shown
}

// fill sets all members that are exported.
func fill(v reflect.Value, text string) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.UnixMilli(1_800_000_000_000).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() || v.Type().Field(i).Anonymous {
				fill(v.Field(i), text)
			}
		}
	default:
		panic("fill a " + v.Kind().String())
	}
}

// columns are those of the tables that package merchant stands on, with what an erasure does.
var columns = map[string]string{
	"gateway_schema": `notHis part version oldest applied_at`,
	"gateway_accounts": `notHis name fingerprint digest_key created_at prefix zone book sweep_at deep_sweep_at balance_at walk_at
		walking disputes_at singly_until singly_why adopt_at keep_at`,
	// Of progress, the number of requests stays.
	"gateway_operations": `stays id account kind key resource state refunded claims lease_until due_at created_at updated_at job_id;
		goes params progress digest`,
	"gateway_webhook_events": `stays seq key account event_id kind resource fact signed source late position key_id trace state aside
		attempts expired token due lease since arrived stands_in matched; goes digest body confirmed reason`,
	"gateway_balances": `notHis account currency at balance booked`,
	"gateway_orders": `stays book subject currency paid fee refunded disputed paid_out adjusted settled_by current price price_in
		interest owed owed_facts told version closed_at adopting erased_at purged_at ends_at`,
	"gateway_charges": `stays id account book subject attempt ref transaction_id end_to_end_id state created_at erased_at buyer;
		inside record`,
	"gateway_refunds": `stays book id charge state created_at; inside record`,
	"gateway_payouts": `stays book id account subject ref transfer_id state created_at erased_at; inside record`,
	// What the merchant offers.
	"gateway_links":         `notHis book id account url created_at record`,
	"gateway_link_sales":    `notHis account sold link`,
	"gateway_subscriptions": `stays book id account ref subscription_id state created_at told erased_at; goes params; inside record`,
	"gateway_checks":        `stays kind id account lane check_at lease_until`,
	"gateway_facts": `stays seq key account book subject stream record charge kind amount currency about at month source
		created_at callback delivered_at skipped due_at attempts; goes error`,
	"gateway_skipped": `notHis account callback day n`,
	// The text of plainProblems stays.
	"gateway_problems": `stays id key account book subject record about kind since closed_at; goes text`,
	"gateway_notes": `stays id account book subject record problem kind decision resource_id decided_by call created_at; goes why
		error`,
	"gateway_totals":   `notHis account month currency kind amount first`,
	"gateway_unsummed": `notHis last first since xid`,
	// The row goes.
	"gateway_unknown":   `goes account family id ref kind event events first_at last_at`,
	"gateway_buyers":    `goes digest book kind record`,
	"gateway_adoptions": `stays account kind resource book subject state since due_at attempts; goes error; inside request`,
	"gateway_adopted":   `notHis account currency amount`,
}

var column = regexp.MustCompile(`(?m)^\s+(\w+)\s+(?:text|int|INTEGER|bigint|BLOB|TEXT)`)

// Each column has a decision too.
func TestEachColumnHasADecisionAboutItsErasure(t *testing.T) {
	t.Parallel()
	decided := make(map[string]bool)
	for table, text := range columns {
		for name := range decidedIn(t, text) {
			decided[table+"."+name] = true
		}
	}
	list, err := database.Schema(database.DialectSQLite, "")
	require.NoError(t, err)
	found := make(map[string]bool)
	for _, m := range list {
		for _, statement := range m.Statements() {
			words := strings.Fields(statement)
			switch {
			case strings.HasPrefix(statement, "CREATE TABLE "):
				for _, match := range column.FindAllStringSubmatch(statement, -1) {
					found[words[2]+"."+match[1]] = true
				}
			case strings.HasPrefix(statement, "ALTER TABLE ") && words[3] == "ADD":
				found[words[2]+"."+words[5]] = true
			}
		}
	}
	require.Greater(t, len(found), 200)
	for name := range found {
		assert.True(t, decided[name], "say in columns, and in ledger/erase.go, whether %s may stay when a buyer is erased",
			name)
	}
	for name := range decided {
		assert.True(t, found[name], "there is no column %s any more", name)
	}
}

func TestAReasonThatIsACodeStays(t *testing.T) {
	t.Parallel()
	for _, is := range []string{"expired", "insufficient_funds", "three_ds_failed_2"} {
		assert.Equal(t, is, keptReason(is))
	}
	for _, is := range []string{
		"Ana", "ana souza", "ana@example.com", "11987654321", "invalid_document: buyer.document", "a", "",
		"abandoned: Ana has called", strings.Repeat("a", 65),
	} {
		assert.Empty(t, keptReason(is), is)
	}
}

func TestABuyerIsFoundHoweverHeIsWritten(t *testing.T) {
	t.Parallel()
	want := digestsOf("key", "39053344705", "ana@example.com")
	require.Len(t, want, 2)
	assert.Equal(t, want, digestsOf("key", " 390.533.447-05", "\tANA@Example.com\n"))
	assert.NotEqual(t, want, digestsOf("another", "39053344705", "ana@example.com"))
	assert.Equal(t, digestsOf("key", "12ABC34501DE35", ""), digestsOf("key", "12.abc.345/01de-35", ""))
	assert.NotEqual(t, digestsOf("key", "1", ""), digestsOf("key", "", "1"))
	assert.Empty(t, digestsOf("key", ".-/", "  "))
}
