package backoffice

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/merchant"
)

// load parses the pages. zone returns the time zone of an account.
func load(zone func(account string) (*time.Location, error)) (map[string]*template.Template, error) {
	functions := template.FuncMap{
		"money": money,
		"words": words,
		"mask":  func(text string) string { return masking.Text(text) },
		"tone":  tone,
		"link":  link,
		"age":   age,
		"when": func(account string, t time.Time) *stamp {
			return at(zone, account, t)
		},
		"meaning":  func(kind merchant.ProblemKind) string { return meanings[kind] },
		"effect":   effect,
		"warns":    func(d merchant.Decision) bool { return d == merchant.SendAgain },
		"owner":    owner,
		"group":    func(n int) string { return grouped(strconv.Itoa(n)) },
		"add":      func(a, b int) int { return a + b },
		"negative": func(cents int64) int64 { return -cents },
	}
	files, err := pageFiles.ReadDir("pages")
	if err != nil {
		return nil, err
	}
	pages := make(map[string]*template.Template)
	for _, file := range files {
		name, _, _ := strings.Cut(file.Name(), ".")
		if name == "layout" {
			continue
		}
		pages[name], err = template.New(name).Funcs(functions).ParseFS(pageFiles, "pages/layout.html", "pages/"+file.Name())
		if err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// money shows cents with the decimals of the currency: "BRL 1,234.50".
func money(cents int64, currency gateway.Currency) string {
	code, number, ok := strings.Cut(gateway.FormatAmount(cents, currency), " ")
	if !ok {
		return grouped(code)
	}
	return code + "\u00A0" + grouped(number)
}

// grouped separates the thousands of a number.
func grouped(number string) string {
	sign, digits := "", number
	if rest, ok := strings.CutPrefix(number, "-"); ok {
		sign, digits = "\u2212", rest
	}
	whole, fraction, hasFraction := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if hasFraction {
		whole += "." + fraction
	}
	return sign + whole
}

// stamp is a time in the zone of an account.
type stamp struct{ UTC, Text string }

// at returns nil if there is no time.
func at(zone func(string) (*time.Location, error), account string, t time.Time) *stamp {
	if t.IsZero() {
		return nil
	}
	in, err := zone(account)
	if err != nil { // an order of several accounts has no zone
		in = time.UTC
	}
	return &stamp{UTC: t.UTC().Format(time.RFC3339), Text: t.In(in).Format("2006-01-02 15:04:05 MST")}
}

// age shows for how long something has waited.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// words shows a name of the code.
func words(name any) string {
	return strings.NewReplacer("_", " ", "-", " ").Replace(fmt.Sprint(name))
}

// tone groups the states of all records by color.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case "paid", "done", "active", "accepted":
		return "good"
	case "new", "unknown", "pending", "incomplete", "trialing":
		return "open"
	case "ambiguous", "underpaid", "disputed", "failed", "rejected", "past_due", "unpaid":
		return "bad"
	}
	return "ended"
}

// link returns the relative URL of a page with its query, as pairs of names and values.
func link(page string, query ...any) string {
	values := make(url.Values)
	for i := 0; i+1 < len(query); i += 2 {
		if value := fmt.Sprint(query[i+1]); value != "" {
			values.Set(fmt.Sprint(query[i]), value)
		}
	}
	if page == "" {
		page = "./"
	}
	if len(values) == 0 {
		return page
	}
	return page + "?" + values.Encode()
}

// owner returns the link to what a problem is about, "" if no record is known.
func owner(p *merchant.Problem) string {
	switch {
	case p.Order != "":
		return link("order", "id", p.Order, "book", p.Book)
	case p.Subscription != "":
		return link("subscription", "id", p.Subscription, "book", p.Book)
	case p.Record != "":
		return link("find", "q", p.Record)
	}
	return ""
}

// sentence shows what is wrong with a form.
func sentence(err *gateway.ValidationError) string {
	texts := make([]string, 0, len(err.Fields))
	for _, f := range err.Fields {
		texts = append(texts, words(f.Field)+" "+f.Message)
	}
	text := strings.Join(slices.Compact(texts), "; ")
	return masking.Text(strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):] + ".")
}

// meanings says what the kinds of problems mean, and what to look at.
var meanings = map[merchant.ProblemKind]string{
	merchant.ProblemAmbiguous:      "It can't be determined whether the gateway did what was requested. Look for it in the gateway's dashboard before you decide.",
	merchant.ProblemOutcome:        "The outcome of a request is known, but could not be stored here.",
	merchant.ProblemCallback:       "A callback of your program keeps failing. It is repeated, and later callbacks of the order wait for it. Fix the cause first.",
	merchant.ProblemEvent:          "A webhook event could not be handled and is not repeated. Fix the cause, then handle it once more.",
	merchant.ProblemUnderpaid:      "Less than requested was paid, or in another currency. The order does not count as paid.",
	merchant.ProblemPaidAgain:      "A payment arrived that the order did not need. Refund it, or keep it for a reason.",
	merchant.ProblemUnknownState:   "The gateway reports a status that this release does not know. Look whether a newer release does.",
	merchant.ProblemUnmatched:      "The gateway's resource is not that of the record.",
	merchant.ProblemContested:      "A dispute is contested. Whether the gateway withholds the money meanwhile is not known.",
	merchant.ProblemContradiction:  "The gateway reports what can't be true. Compare with its dashboard.",
	merchant.ProblemLower:          "For a day the gateway has reported less than is booked. Compare with its dashboard, and correct the books if they are wrong.",
	merchant.ProblemCurrency:       "Money arrived in another currency than the order's. It is not in the order's sums.",
	merchant.ProblemReversed:       "A payout ended twice, differently. Look at the bank statement.",
	merchant.ProblemCancelRejected: "The gateway rejected the cancellation: the subscription is still charged. Cancel it again, or in the gateway's dashboard.",
	merchant.ProblemRefundRejected: "The gateway rejected a refund: the money is still with you. Refund it with another ID.",
}

// effect says what a decision about a kind of problem does.
func effect(kind merchant.ProblemKind, d merchant.Decision) string {
	switch d {
	case merchant.Applied:
		return "The gateway did it."
	case merchant.SendAgain:
		return "The gateway did not do it: send it again. If it did after all, money moves twice."
	case merchant.Abandon:
		return "The gateway did not do it, and it is not sent again. The record fails or is rejected."
	case merchant.Accept:
		return "What was paid is enough: the order counts as paid."
	case merchant.Retry:
		switch kind {
		case merchant.ProblemCallback:
			return "Call the callback again at once."
		case merchant.ProblemEvent:
			return "Handle the event once more."
		}
		return "Store the outcome once more."
	case merchant.Dismiss:
		if kind == merchant.ProblemEvent {
			return "Give the event up: it is never handled."
		}
	}
	return "There is nothing left to do."
}
