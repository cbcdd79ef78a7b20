package gatewayprobe

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ok reports whether a request was accepted.
func (r response) ok() bool { return r.status >= 200 && r.status <= 299 }

// invalid reports whether a request was rejected as one that breaks a rule.
func (r response) invalid() bool {
	return r.status == http.StatusBadRequest || r.status == http.StatusUnprocessableEntity
}

// find returns the value at a path of names and positions: "data.products.0.name".
func (r response) find(path string) (v any, found bool) {
	v = r.value
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			if v, found = in[name]; !found {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// at is find for a value that may be missing.
func (r response) at(path string) any {
	v, _ := r.find(path)
	return v
}

func (r response) text(path string) string {
	s, _ := r.at(path).(string)
	return s
}

// null reports whether a member is present and null.
func (r response) null(path string) bool {
	v, found := r.find(path)
	return found && v == nil
}

// int returns an integer, or -1.
func (r response) int(path string) int64 {
	f, ok := r.at(path).(float64)
	if !ok || f != float64(int64(f)) {
		return -1
	}
	return int64(f)
}

func (r response) time(path string) time.Time {
	t, _ := time.Parse(time.RFC3339, r.text(path))
	return t
}

// list returns the elements of a list, in either dialect.
func (r response) list() []any {
	if list, ok := r.at("data").([]any); ok {
		return list
	}
	list, _ := r.at("data.data").([]any)
	return list
}

// member returns a member next to the list's elements, in either dialect.
func (r response) member(name string) (any, bool) {
	if v, found := r.find("data." + name); found {
		return v, true
	}
	return r.find(name)
}

// ids returns the ids of a list's elements.
func (r response) ids() []string {
	var ids []string
	for _, e := range r.list() {
		ids = append(ids, response{value: e}.text("id"))
	}
	return ids
}

// listed returns the element of a list with an id.
func (r response) listed(id string) response {
	for _, e := range r.list() {
		if is := (response{value: e}); is.text("id") == id {
			return is
		}
	}
	return response{}
}

// fields returns the paths of the members that a rejection names.
func (r response) fields() []string {
	var names []string
	for _, at := range [...]string{"errors", "validation_errors"} {
		list, _ := r.at(at).([]any)
		for _, e := range list {
			names = append(names, response{value: e}.text("field"))
		}
	}
	return names
}

// names reports whether a rejection names a member, as a field or in its
// message.
func (r response) names(field string) bool {
	same := func(named string) bool { return dotted(named) == dotted(field) }
	return slices.ContainsFunc(r.fields(), same) || slices.ContainsFunc([]string{"detail", "message"}, func(at string) bool {
		return strings.Contains(r.text(at), field)
	})
}

// dotted writes products[0].name as products.0.name: only row error-fields is
// about the spelling.
func dotted(field string) string { return strings.NewReplacer("[", ".", "]", "").Replace(field) }

func (r response) code() string {
	if code := r.text("code"); code != "" {
		return code
	}
	return r.text("error")
}

// problem reports whether a body has the members of a problem.
func (r response) problem() bool { return r.text("title") != "" && r.int("status") == int64(r.status) }

// plain reports whether a body is {error, message, status}.
func (r response) plain() bool {
	return r.text("error") != "" && r.text("message") != "" && r.int("status") == int64(r.status)
}

// summary describes a response in a few words, without values.
func (r response) summary() string {
	if r.err != nil {
		return r.err.Error()
	}
	text := strconv.Itoa(r.status)
	if code := r.code(); code != "" && len(code) <= 50 {
		text += " " + code
	}
	if names := r.fields(); len(names) > 0 {
		text += fmt.Sprintf(" (%s)", strings.Join(names[:min(len(names), 4)], ", "))
	}
	return text
}
