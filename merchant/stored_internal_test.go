package merchant

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// commits are the calls that commit, and ledger writes outside of a transaction, which commit
// too. Each function that has one is here, with what becomes of a COMMIT whose outcome is not
// known.
var commits = map[string]string{
	// The floor.
	"stored.go: stored Transaction": "found out by sure",
	"stored.go: noted Transaction":  "found out by sure and by the note",
	"stored.go: stored sure":        "it is",
	"stored.go: noted sure":         "it is",
	"stored.go: surely stored":      "found out by sure",
	"desk.go: once Transaction":     "see its callers",
	"reading.go: byIndex ByIndex":   "see its callers that write",

	// Verbs, which return [ErrMaybeStored].
	"charge.go: charge sends":                    "found by its call",
	"adopt.go: adopts stored":                    "what is adopted is found by its resource",
	"adoptions.go: AdoptAll stored":              "what is stored is found by its resource",
	"payout.go: Payout sends":                    "found by its ID",
	"refund.go: refundNow sends":                 "found by its ID",
	"subscription.go: Subscribe sends":           "found by its ID",
	"subscription.go: CancelSubscription stored": "found by its call",
	"link.go: prepareLink stored":                "found by its ID",
	"link.go: dropLink stored":                   "deletes: twice is once",
	"link.go: Link stored":                       "the first URL stays",
	"erase.go: Erase noted":                      "what is erased twice is erased once, and the note is found by its call",
	"erase.go: EraseBuyer noted":                 "what is erased twice is erased once, and the note is found by its call",
	"sender.go: sends stored":                    "found out by sure",
	"statement.go: Adjust stored":                "found by its ID, which is the call of its note",
	"resolve.go: elsewhere noted":                "found by the call of its note",
	"resolve.go: resolveRow noted":               "found by the call of its note",
	"resolve.go: resolveCallback noted":          "found by the call of its note",
	"resolve.go: elsewhere sure":                 "an event that is no dead letter and a request that is decided are found",
	"merchant.go: Refresh sure":                  "a reading that is booked twice changes nothing",
	"resolve.go: elsewhere outside.FailNote":     "the note lacks its error, which the caller gets",
	"charge.go: chargeNow surely":                "twice is once: it takes over what the outbox knows",
	"payout.go: sendPayout surely":               "twice is once: it takes over what the outbox knows",
	"refund.go: sendRefund surely":               "a reading that is booked twice changes nothing",

	// Open returns the error, and is called again.
	"schema.go: migrate Transaction": "an account is registered once, by its name",

	// Statements of the loops of Run, each by itself.
	"gate.go: claim outside.Claim":                   "claimed until the lease ends",
	"comparer.go: begin outside.Release":             "claimed until the lease ends",
	"comparer.go: release outside.Release":           "claimed until the lease ends",
	"sweeper.go: searchSales outside.ClaimSweep":     "done when it is due again",
	"sweeper.go: noteBalanceIfDue outside.ClaimTask": "done when it is due again",
	"walk.go: walk outside.ClaimTask":                "done when it is due again",
	"walk.go: walk outside.TaskIn":                   "done when it is due again",
	"unknown.go: other outside.AddUnknown":           "the event is handled again, and counts once",
	"unknown.go: other outside.TrimUnknown":          "deletes: twice is once",
	"walk.go: claim outside.ClaimCharges":            "claimed until the lease ends",
	"walk.go: compare outside.Return":                "claimed until the lease ends",
	"walk.go: release outside.Release":               "claimed until the lease ends",
	"walk.go: readSingly outside.ReadSingly":         "the next walk finds the same, or the lists are right again",
	"adoptions.go: adoptDue outside.ClaimTask":       "done when the lease ends",
	"adoptions.go: adoptDue outside.TaskIn":          "done when the lease ends",
	"adoptions.go: keepAdopting outside.TaskIn":      "another process may begin sooner",
	"adoptions.go: adoptDueOne outside.AdoptLater":   "it is tried sooner",
	"keep.go: keep outside.ClaimTask":                "done when the lease ends",
	"keep.go: keep outside.TaskIn":                   "done when the lease ends",
	"keep.go: keepBook outside.TaskIn":               "another process may begin sooner",
	"keep.go: findBuyers outside.TaskIn":             "another process may begin sooner",
	"keep.go: findBuyers outside.ForgetBuyer":        "it is read once more",
	"keep.go: keepSubject outside.EndsAt":            "it is looked at sooner",
	"dispute.go: search outside.ClaimTask":           "done when it is due again",
	"dispute.go: search outside.TaskIn":              "done when it is due again",
	"dispute.go: book outside.CompareNow":            "done by the next search",
	"sweeper.go: sweep outside.SweepAgain":           "looks further back once more",
	"balance.go: noteBalance outside.NoteBalance":    "a balance is noted again when it is due",

	// The loops of Run and the handlers of events: they repeat their work after any error, and a
	// reading that is booked twice changes nothing.
	"compare.go: book once":                     "repeated by its loop; Refresh by sure",
	"comparer.go: compareRecord once":           "repeated by its loop",
	"payout.go: onTransfer once":                "the event is handled again",
	"receive.go: onCharged once":                "the event is handled again",
	"sale.go: sale Transaction":                 "repeated by the event or the sweeper: a sale is found by its transaction",
	"sale.go: undecidedSale once":               "repeated by the event or the sweeper: a problem is stored once, by its key",
	"adoptions.go: adoptionFailed Transaction":  "it is tried once more; its problem is stored twice",
	"keep.go: keepOne Transaction":              "what is erased twice is erased once",
	"totals.go: total Transaction":              "the next one begins where the last one that is stored has ended",
	"totals.go: auditTotals Transaction":        "the sums are those of the entries, however often they are made",
	"courier.go: skip Transaction":              "a fact that was given up is not given up again",
	"deliver.go: tryDelivery Commit":            "a fact that was delivered is not taken again",
	"deliver.go: callbackFailed outside.Failed": "only of a fact that is not delivered",
}

// Each call that commits is in the list, so that a new one can't be forgotten.
func TestEachCommitSaysWhatALostOneDoes(t *testing.T) {
	t.Parallel()
	writes := make(map[string]bool) // the methods of package ledger that change something
	eachFunction(t, "internal/ledger", func(_ string, f *ast.FuncDecl) {
		ast.Inspect(f.Body, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if ok && text.Kind == token.STRING && statement.MatchString(text.Value) {
				writes[f.Name.Name] = true
			}
			return true
		})
	})
	require.Contains(t, writes, "FailNote")
	found := make(map[string]bool)
	eachFunction(t, ".", func(file string, f *ast.FuncDecl) {
		c := committing{writes: writes, outside: make(map[string]bool)}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if what := c.call(n); what != "" {
				found[file+": "+f.Name.Name+" "+what] = true
			}
			return true
		})
	})
	for what := range found {
		assert.Contains(t, commits, what, "say in commits what a COMMIT whose outcome is not known does there")
	}
	for what := range commits {
		assert.Contains(t, found, what, "there is no such call any more")
	}
}

var statement = regexp.MustCompile(`(?i)^.\s*(insert|update|delete) `)

// eachFunction calls use for each function of a package.
func eachFunction(t *testing.T, folder string, use func(file string, f *ast.FuncDecl)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				use(filepath.Base(name), f)
			}
		}
	}
}

// committing finds the calls of a function that commit.
type committing struct {
	writes  map[string]bool
	outside map[string]bool // the variables with tables outside of a transaction
}

// call returns what commits, "" if nothing does.
func (c *committing) call(n ast.Node) string {
	if set, ok := n.(*ast.AssignStmt); ok {
		for i, value := range set.Rhs {
			name, ok := set.Lhs[i].(*ast.Ident)
			if ok && isOutside(value) {
				c.outside[name.Name] = true
			}
		}
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	c.byIndex(call)
	if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "sure" {
		return f.Name
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of, isName := method.X.(*ast.Ident)
	switch name := method.Sel.Name; name {
	case "Transaction", "Durable", "ByIndex", "UserTx", "Commit":
		return name
	case "once", "stored", "sends", "surely", "noted": // of core
		field, isField := method.X.(*ast.SelectorExpr)
		if isName && of.Name == "m" || isField && field.Sel.Name == "m" {
			return name
		}
	default:
		if c.writes[name] && (isOutside(method.X) || isName && c.outside[of.Name]) {
			return "outside." + name
		}
	}
	return ""
}

// byIndex notes the tables of a transaction that [reading.byIndex] commits.
func (c *committing) byIndex(call *ast.CallExpr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "byIndex" {
		return
	}
	for _, arg := range call.Args {
		if run, ok := arg.(*ast.FuncLit); ok {
			c.outside[run.Type.Params.List[0].Names[0].Name] = true
		}
	}
}

func isOutside(of ast.Expr) bool {
	call, ok := of.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "outside"
}
