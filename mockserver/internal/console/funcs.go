package console

import (
	"html/template"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
)

// functions are what the templates can call.
func functions() template.FuncMap {
	return template.FuncMap{
		"stamp":      stamp,
		"day":        func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
		"clock":      func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"reais":      func(cents int64) string { return gateway.FormatAmount(cents, gateway.BRL) },
		"readable":   readable,
		"short":      short,
		"state":      func(s string) string { return "state-" + tone(s) },
		"code":       codeOf,
		"relative":   relative,
		"human":      human,
		"words":      func(name string) string { return strings.ReplaceAll(name, "_", " ") },
		"columnKind": columnKind,
		"ms":         func(d time.Duration) string { return d.Round(10 * time.Microsecond).String() },
		"indent":     indented,
		"form":       form,
		"ticks":      ticks,
		"actionOf":   actionOf,
		"dict":       dict,
		"join":       strings.Join,
	}
}

// actionOf returns the action that belongs to an id, nil if there is none.
func actionOf(m map[string]action, id string) *action {
	if a, ok := m[id]; ok {
		return &a
	}
	return nil
}

// piece is a part of a text; code if it was between backticks.
type piece struct {
	Text string
	Code bool
}

// ticks splits a text of the documentation at its backticks.
func ticks(text string) (list []piece) {
	code := false
	for part := range strings.SplitSeq(text, "`") {
		if part != "" {
			list = append(list, piece{part, code})
		}
		code = !code
	}
	return list
}

// dict makes a map of names and values, for a template with several arguments.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, ok := pairs[i].(string); ok {
			m[name] = pairs[i+1]
		}
	}
	return m
}

// formData is an action on a page.
type formData struct {
	*view
	Action action
}

// form adds an action to a page.
func form(v *view, a any) formData {
	if p, ok := a.(*action); ok {
		return formData{v, *p}
	}
	plain, _ := a.(action) // callers pass nothing else
	return formData{v, plain}
}

// readable formats the interface's timestamps for people: to the second, in
// UTC.
func readable(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// short truncates an id: the end of a UUID distinguishes two of them.
func short(id string) string {
	if len(id) <= 16 {
		return id
	}
	return "…" + id[len(id)-12:]
}

// tone groups the states of all resources by color.
func tone(state string) string {
	switch state {
	case "paid", "captured", "active", "completed", "delivered", "processed", "ACTIVE":
		return "good"
	case "pending", "processing", "in_analysis", "incomplete", "trialing", "open", "ready", "three_ds_required", "waiting_payment", "held":
		return "open"
	case "refused", "chargedback", "error", "past_due", "failed", "med", "in_protest", "pre_chargedback":
		return "bad"
	default:
		return "done"
	}
}
