package merchant_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/merchant/backoffice"
	"github.com/gateway-go/gateway/webhook"
)

// books is what a Merchant and Reports have in common.
type books interface {
	backoffice.Reports

	Order(ctx context.Context, id string) (*merchant.Order, error)
	Story(ctx context.Context, order string) ([]merchant.Step, error)
	PayoutByID(ctx context.Context, id string) (*merchant.Payout, error)
	Subscription(ctx context.Context, id string) (*merchant.Subscription, error)
	Adoptions(ctx context.Context, account string) (waiting, done, failed int, err error)
}

// two is what a method returns besides its error.
func two(a any, err error) ([]any, error) { return []any{a}, err }

// readings call each method that reads, on a shop that is [busy]. Book has a test of its own.
func readings(t *testing.T) map[string]func(m books) ([]any, error) {
	t.Helper()
	ctx, month := t.Context(), time.Now().UTC().Format("2006-01")
	each := func(ids []string, read func(id string) (any, error)) (all []any, err error) {
		for _, id := range ids {
			is, err := read(id)
			if err != nil {
				return nil, err
			}
			all = append(all, is)
		}
		return all, nil
	}
	orders := []string{"PAID-1", "DISPUTED-1", "AMBIGUOUS-1", markup, "none"}
	accounts := []string{"other", "shop"}
	return map[string]func(m books) ([]any, error){
		"Accounts": func(m books) ([]any, error) { return two(m.Accounts(), nil) },
		"Adoptions": func(m books) ([]any, error) {
			waiting, done, failed, err := m.Adoptions(ctx, "shop")
			return []any{waiting, done, failed}, err
		},
		"DeadLetters": func(m books) ([]any, error) {
			return each(accounts, func(a string) (any, error) { return m.DeadLetters(ctx, a, webhook.DeadLetterQuery{}) })
		},
		"Export": func(m books) ([]any, error) {
			var out bytes.Buffer
			for _, format := range []merchant.Format{merchant.CSV, merchant.Hledger} {
				if err := m.Export(ctx, &out, "shop", month, format); err != nil {
					return nil, err
				}
			}
			return []any{out.String()}, nil
		},
		"Find": func(m books) ([]any, error) {
			return each(append(orders, "return-1", "seller-1", "M1", "shop-PAID-1-1"), func(id string) (any, error) { return m.Find(ctx, id) })
		},
		"Health": func(m books) ([]any, error) {
			h, err := m.Health(ctx)
			h.Callbacks.Oldest, h.Comparisons.Oldest = 0, 0 // as time goes by
			h.Callbacks.Waiting, h.Skipped = 0, nil         // of callbacks that a process lacks
			for i := range h.Accounts {                     // what is being repeated
				is := &h.Accounts[i].Events
				is.Waiting, is.Claimed, is.Oldest = 0, 0, 0
			}
			return []any{h}, err
		},
		"Month": func(m books) ([]any, error) {
			return each(accounts, func(a string) (any, error) { return m.Month(ctx, a, month) })
		},
		"Order": func(m books) ([]any, error) {
			return each(orders, func(id string) (any, error) { return m.Order(ctx, id) })
		},
		"PayoutByID": func(m books) ([]any, error) { return two(m.PayoutByID(ctx, "seller-1")) },
		"Problem": func(m books) ([]any, error) {
			list, err := m.Problems(ctx)
			if err != nil {
				return nil, err
			}
			all := []any{len(list)}
			for _, p := range list {
				is, err := m.Problem(ctx, p.ID)
				if err != nil {
					return nil, err
				}
				all = append(all, is)
			}
			return all, nil
		},
		"Problems": func(m books) ([]any, error) { return two(m.Problems(ctx)) },
		"Record": func(m books) (all []any, err error) {
			for kind, id := range map[string]string{
				"order": "PAID-1", "charge": "shop-DISPUTED-1-1", "refund": "return-1", "payout": "bill-1", "subscription": "M1",
			} {
				is, err := m.Record(ctx, "shop", kind, id)
				if err != nil {
					return nil, err
				}
				unsaid(is.Story)
				all = append(all, []any{kind, is})
			}
			slices.SortFunc(all, func(a, b any) int { return strings.Compare(a.([]any)[0].(string), b.([]any)[0].(string)) })
			return all, nil
		},
		"Story": func(m books) ([]any, error) {
			return each([]string{"PAID-1", "DISPUTED-1", "AMBIGUOUS-1", "none"}, func(id string) (any, error) {
				steps, err := m.Story(ctx, id)
				return unsaid(steps), err
			})
		},
		"Subscription": func(m books) ([]any, error) { return two(m.Subscription(ctx, "M1")) },
		"Unknown":      func(m books) ([]any, error) { return two(m.Unknown(ctx, merchant.UnknownQuery{Account: "shop"})) },
		"Zone": func(m books) ([]any, error) {
			return each(accounts, func(a string) (any, error) {
				zone, err := m.Zone(a)
				if err != nil {
					return nil, err
				}
				return zone.String(), nil
			})
		},
	}
}

// unsaid removes from a story what a process says because it lacks a callback.
func unsaid(story []merchant.Step) []merchant.Step {
	for i := range story {
		story[i].Text = strings.TrimSuffix(story[i].Text, " for a process that has this callback")
	}
	return story
}

// changes are the methods of Merchant that Reports lacks: they write, send, or need a transaction or
// the gateway.
var changes = []string{
	"Adjust", "Adopt", "AdoptAll", "AdoptTx", "CancelSubscription", "CancelSubscriptionTx", "Charge", "ChargeTx", "CheckMonth", "CloseOrderTx",
	"Erase", "EraseBuyer", "EraseTx",
	"Idle", "Link", "OrderTx", "Payout", "PayoutTx", "Ready", "Reconcile", "Refresh", "Refund", "RefundTx", "Resolve", "Run", "Send", "Subscribe",
	"SubscribeTx", "Webhook",
}

func methods[T any]() (names []string) {
	for m := range reflect.TypeFor[T]().Methods() {
		names = append(names, m.Name)
	}
	return names
}

// Every method of Merchant is read on a replica, or is known to be none of a report.
func TestReportsHaveAllThatReads(t *testing.T) {
	t.Parallel()
	var read []string
	for name := range readings(t) {
		read = append(read, name)
	}
	assert.ElementsMatch(t, append(read, "Book"), methods[*merchant.Reports]())
	assert.ElementsMatch(t, append(append(read, "Book"), changes...), methods[*merchant.Merchant[*sql.Tx]]())
}

// readerName returns the data source name of a role with no right but SELECT, whose transactions are
// read-only.
func (w *world) readerName(role string) string {
	w.Helper()
	schema := w.schema()
	w.exec(`CREATE ROLE ` + role + ` LOGIN`)
	w.exec(`GRANT USAGE ON SCHEMA ` + schema + ` TO ` + role)
	w.exec(`GRANT SELECT ON ALL TABLES IN SCHEMA ` + schema + ` TO ` + role)
	return strings.Replace(w.name, "user=gateway", "user="+role, 1) + "&default_transaction_read_only=on"
}

func (w *world) schema() string {
	w.Helper()
	_, schema, found := strings.Cut(w.name, "search_path=")
	require.True(w, found)
	return schema
}

// opened opens reports by a driver of database/sql.
func (w *world) opened(driver, name string) (*merchant.Reports, error) {
	w.Helper()
	db, err := sql.Open(driver, name)
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, db.Close()) })
	on := database.Postgres
	if driver == "sqlite" {
		on = database.SQLite
	}
	return merchant.OpenReports(w.Context(), on(db), merchant.ReportsConfig{Logger: quiet})
}

func (w *world) openedByPgx(name string) (*merchant.Reports, error) {
	w.Helper()
	pool, err := pgxpool.New(w.Context(), name)
	require.NoError(w, err)
	w.Cleanup(pool.Close)
	return merchant.OpenReports(w.Context(), pgxdriver.New(pool), merchant.ReportsConfig{Logger: quiet})
}

// same compares what reports say with what the merchant says.
func same(w *world, m, r books) {
	w.Helper()
	for name, read := range readings(w.T) {
		var want, got string
		w.within(10*time.Second, func() bool { // the shop works on, and a replica lags
			is, err := read(m)
			require.NoError(w, err, name)
			want = shown(is)
			is, err = read(r)
			require.NoError(w, err, name)
			got = shown(is)
			return want == got
		})
		assert.Equal(w, want, got, name)
	}
}

// shown follows pointers, so that two readings can be compared as texts.
func shown(v any) string {
	var out bytes.Buffer
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		if v.IsValid() && v.CanInterface() {
			if t, is := v.Interface().(time.Time); is {
				fmt.Fprint(&out, t.UTC())
				return
			}
		}
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				fmt.Fprint(&out, "[")
				walk(v.Index(i))
				fmt.Fprint(&out, "]")
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					fmt.Fprint(&out, " ", v.Type().Field(i).Name, ":")
					walk(v.Field(i))
				}
			}
		default:
			fmt.Fprint(&out, v)
		}
	}
	walk(reflect.ValueOf(v))
	return out.String()
}

// A role that may only SELECT, and a file that is opened for reading, show all that the shop shows.
func TestReportsOfARoleThatMayOnlySelect(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		busy(w)
		ways := map[string]func() (*merchant.Reports, error){}
		if w.dialect == database.DialectSQLite {
			file, _, _ := strings.Cut(w.name, "?")
			ways["sqlite"] = func() (*merchant.Reports, error) {
				return w.opened("sqlite", file+"?mode=ro&_pragma=busy_timeout(10000)")
			}
			ways["sqlite as the shop"] = func() (*merchant.Reports, error) {
				return w.opened("sqlite", w.name+"&mode=ro&_pragma=query_only(true)")
			}
		} else {
			name := w.readerName("r_" + strings.ToLower(rand.Text()[:16]))
			ways["lib/pq"] = func() (*merchant.Reports, error) { return w.opened("postgres", name) }
			ways["pgx by database/sql"] = func() (*merchant.Reports, error) { return w.opened("pgx", name) }
			ways["pgxpool"] = func() (*merchant.Reports, error) { return w.openedByPgx(name) }
			ways["repeatable read"] = func() (*merchant.Reports, error) {
				return w.opened("pgx", name+"&default_transaction_isolation=repeatable%20read")
			}
		}
		for name, open := range ways {
			r, err := open()
			require.NoError(w, err, name)
			same(w, w.m, r)

			require.Equal(w, []string{"other", "shop"}, r.Accounts())
			assert.Empty(w, r.Book("none").Accounts())
			_, err = r.Book("none").Order(w.Context(), "PAID-1")
			require.ErrorIs(w, err, merchant.ErrAccount)
			o, err := r.Book("shop").Order(w.Context(), "PAID-1")
			require.NoError(w, err)
			assert.Equal(w, int64(12345678), o.Paid)

			// The pages show it too, and have no form.
			page, err := backoffice.New(r, backoffice.Config{Logger: quiet, Actor: func(*http.Request) (string, bool) { return "Rui", true }})
			require.NoError(w, err)
			mux := http.NewServeMux()
			mux.Handle(mount, page)
			pages := &office{world: w, pages: mux, seen: make(map[string]string)}
			pages.crawl("find?q=PAID-1", "subscription?id=M1", "payout?id=bill-1", "order?id=PAID-1", "order?id=DISPUTED-1", "dead-letters?account=shop")
			for path, body := range pages.seen {
				assert.NotContains(w, body, `method="post"`, path)
			}
			assert.Equal(w, http.StatusForbidden, pages.do(form("month", nil)).Code)
		}
	})
}

// What is missing is said with what to do. Nothing is created.
func TestReportsOfADatabaseThatDoesNotFit(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		open := func(ctx context.Context) error {
			_, err := merchant.OpenReports(ctx, w.kind.on(w.db, w.pools[w.db]), merchant.ReportsConfig{Logger: quiet})
			return err
		}
		err := open(w.Context())
		require.ErrorIs(w, err, database.ErrSchema)
		require.ErrorContains(w, err, "has none of the gateway's tables")
		require.ErrorContains(w, err, "gateway-schema -dialect "+w.dialect.String())
		assert.Zero(w, w.tablesOfTheGateway())

		opened, err := w.openOn(w.db, w.cfg)
		require.NoError(w, err)
		require.NotNil(w, opened)
		require.NoError(w, open(w.Context()))

		// The tables of the release before this one, and of the next one.
		newer := func(d database.Dialect, schema string) ([]database.Migration, error) {
			list, err := database.Schema(d, schema)
			last := list[len(list)-1].Version + 1
			return append(list, database.Migration{Version: last, Part: database.PartMerchant, SQL: "SELECT 1;"}), err
		}
		list, err := database.Schema(w.dialect, "")
		require.NoError(w, err)
		last := list[len(list)-1].Version
		err = open(sqldb.WithMigrations(w.Context(), newer))
		require.ErrorIs(w, err, database.ErrSchema)
		require.ErrorContains(w, err, fmt.Sprintf("has the tables of version %d, and this release needs version %d", last, last+1))
		require.ErrorContains(w, err, fmt.Sprintf(" -after %d there", last))
		w.exec(`INSERT INTO gateway_schema (part, version, oldest, applied_at) VALUES ('merchant', ?, ?, 0)`, last+1, last+1)
		err = open(w.Context())
		require.ErrorIs(w, err, database.ErrSchema)
		require.ErrorContains(w, err, "install a later release")
		w.exec(`DELETE FROM gateway_schema WHERE version = ?`, last+1)

		w.exec(`UPDATE gateway_accounts SET zone = 'No/Where'`)
		require.ErrorContains(w, open(w.Context()), "ReportsConfig.Zones")
		r, err := merchant.OpenReports(w.Context(), w.kind.on(w.db, w.pools[w.db]), merchant.ReportsConfig{
			Logger: quiet, Zones: map[string]*time.Location{"shop": time.FixedZone("shop", -3600)},
		})
		require.NoError(w, err)
		zone, err := r.Zone("")
		require.NoError(w, err)
		assert.Equal(w, "shop", zone.String())
		w.exec(`DELETE FROM gateway_accounts`)
		err = open(w.Context())
		require.ErrorIs(w, err, merchant.ErrAccount)
		require.ErrorContains(w, err, "merchant.Open on the primary server")
	})
}

// An account whose receiver has stored nothing yet has no row among the events, and none is added.
func TestReportsOfAnAccountWithoutEvents(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		w.exec(`DELETE FROM gateway_webhook_events`)
		r, err := merchant.OpenReports(w.Context(), w.kind.on(w.db, w.pools[w.db]), merchant.ReportsConfig{Logger: quiet})
		require.NoError(w, err)
		h, err := r.Health(w.Context())
		require.NoError(w, err)
		assert.Zero(w, h.Accounts[0].Events)
		letters, err := r.DeadLetters(w.Context(), "", webhook.DeadLetterQuery{})
		require.NoError(w, err)
		assert.Empty(w, letters)
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_webhook_events`))
	})
}

// A role without a right is told which one it lacks, and needs no other.
func TestReportsNameTheRightThatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres)
	w.open()
	role := "r_" + strings.ToLower(rand.Text()[:16])
	name := w.readerName(role)
	w.exec(`REVOKE SELECT ON gateway_facts FROM ` + role)
	_, err := w.opened("pgx", name)
	require.ErrorIs(t, err, database.ErrSchema)
	_, grant, found := strings.Cut(err.Error(), "run ")
	require.True(t, found, err)
	assert.Equal(t, `GRANT SELECT ON "`+w.schema()+`"."gateway_facts" TO "`+role+`"`, grant)
	w.exec(grant)
	_, err = w.opened("pgx", name)
	require.NoError(t, err)
}

// tablesOfTheGateway returns how many tables there are.
func (w *world) tablesOfTheGateway() int {
	w.Helper()
	if w.dialect == database.DialectSQLite {
		return w.count(`SELECT COUNT(*) FROM sqlite_master WHERE name LIKE 'gateway_%'`)
	}
	return w.count(`SELECT COUNT(*) FROM pg_class WHERE relname LIKE 'gateway_%' AND relnamespace = current_schema()::regnamespace`)
}

// revenue is what a report on a read replica does.
func revenue(ctx context.Context, replica *sql.DB, month string) (*merchant.Statement, error) {
	reports, err := merchant.OpenReports(ctx, database.Postgres(replica), merchant.ReportsConfig{})
	if err != nil {
		return nil, err
	}
	return reports.Month(ctx, "shop", month)
}

// A streaming replica shows what it has received. It is a hot standby, which forbids locks,
// sequences and temporary tables.
func TestReportsOnAStreamingReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres)
	busy(w)
	standby := w.standby()
	r, err := w.opened("pgx", standby+"&search_path="+w.schema())
	require.NoError(t, err)
	_, err = merchantOn(w, standby+"&search_path="+w.schema())
	require.Error(t, err, "a Merchant needs the primary server")
	same(w, w.m, r)
	db, err := sql.Open("pgx", standby+"&search_path="+w.schema())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	s, err := revenue(t.Context(), db, time.Now().UTC().Format("2006-01"))
	require.NoError(t, err)
	assert.Positive(t, s.Paid)

	w.paysWith(func() merchant.ChargeParams { p := pix("LATER-1", 900); p.Account = "shop"; return p }())
	w.eventually("the replica has caught up", func() bool {
		o, err := r.Order(w.Context(), "LATER-1")
		require.NoError(w, err)
		return o.Paid == 900
	})
}

// merchantOn opens a merchant with an account that the database does not have.
func merchantOn(w *world, name string) (*merchant.Merchant[*txn], error) {
	w.Helper()
	db, err := sql.Open("pgx", name)
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, db.Close()) })
	cfg := w.cfg
	cfg.Accounts = []merchant.Account{w.account("third", "sk_test_third", w.gw.Secret())}
	return merchant.Open(w.Context(), ofSQL(database.Postgres(db)), cfg, w.on)
}

// standby starts a streaming replica of the server, and returns its address.
func (w *world) standby() string {
	w.Helper()
	script := os.Getenv("POSTGRES_STANDBY")
	if script == "" {
		w.Skip("POSTGRES_STANDBY is not set: run ../with-postgres go test ./merchant")
	}
	folder, err := os.MkdirTemp("", "standby")
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, os.RemoveAll(folder)) })
	out, err := exec.CommandContext(w.Context(), script, "start", folder).CombinedOutput()
	require.NoError(w, err, string(out))
	w.Cleanup(func() {
		out, err := exec.CommandContext(context.WithoutCancel(w.Context()), script, "stop", folder).CombinedOutput()
		assert.NoError(w, err, string(out))
	})
	return "postgres:///postgres?user=gateway&host=" + filepath.Clean(folder)
}

var (
	_ books = (*merchant.Merchant[*sql.Tx])(nil)
	_ books = (*merchant.Reports)(nil)
)
