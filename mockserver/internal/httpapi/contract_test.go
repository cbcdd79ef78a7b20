package httpapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
)

// What all operations with a body have in common: each member of each body is
// left out, null, and of another type; each body is not JSON, too long,
// contains card data, and comes without credentials.

var dialects = map[string]option{"document": document, "live": live}

// contract tests one operation in one dialect.
type contract struct {
	t       *testing.T
	w       write
	dialect string
}

// wantsDocument reports whether a member is the document of a Pix's buyer, if
// that is required: pix-document.
func (c contract) wantsDocument(member string) bool {
	return c.dialect == "live" && c.w.name == "transactions.create" && member == "buyer.document"
}

// each runs a test for every operation in both dialects.
func each(t *testing.T, do func(contract)) {
	t.Helper()
	for _, w := range writes(t) {
		for dialect := range dialects {
			t.Run(w.name+" "+dialect, func(t *testing.T) {
				t.Parallel()
				do(contract{t, w.in(dialect), dialect})
			})
		}
	}
}

func TestEveryMemberTogether(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		p := w.prepare(t, c.dialect)
		a := p.send(p.body)
		assert.Equal(t, w.status, a.Status, string(a.Body))
	})
}

func TestEveryMemberMissing(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		for _, member := range w.members(t) {
			want := ""
			switch {
			case slices.Contains(w.anyType, member):
				continue
			case c.dialect == "live" && member == "method": // method-optional
			case c.wantsDocument(member):
				want = member
			case slices.Contains(w.required, member):
				want = member
			case w.instead[member] != "":
				want = w.instead[member]
			}
			w.try(t, c.dialect, member, golden.Missing, want, "required")
		}
	})
}

func TestEveryMemberNull(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		for _, member := range w.members(t) {
			switch {
			case slices.Contains(w.anyType, member):
			case slices.Contains(w.nullable, member) && !c.wantsDocument(member):
				w.try(t, c.dialect, member, "null", "", "")
			default:
				w.try(t, c.dialect, member, "null", member, "invalid_type")
			}
		}
	})
}

func TestEveryMemberOfAnotherType(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		for _, member := range w.members(t) {
			for _, value := range []string{`"text"`, "7", "true", "[]", "{}"} {
				if !slices.Contains(w.anyType, member) && kind(w.valueAt(t, member)) != kind(value) {
					w.try(t, c.dialect, member, value, member, "invalid_type")
				}
			}
		}
	})
}

// Two members that are wrong are both named, in the order of the rules.
func TestEveryErrorAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		p := w.prepare(t, c.dialect)
		var wrong []string
		for _, member := range w.members(t) {
			if !strings.ContainsAny(member, ".[") && !slices.Contains(w.anyType, member) {
				value := "true"
				if kind(w.valueAt(t, member)) == kind(value) {
					value = "7"
				}
				p.body = golden.Edit(t, p.body, member, value)
				wrong = append(wrong, member)
			}
		}
		if w.free != nil && len(wrong) == 0 {
			return // it has no own members
		}
		a := p.send(p.body)
		named := map[string]string{}
		if w.plain {
			for part := range strings.SplitSeq(a.text("message"), "; ") {
				name, _, _ := strings.Cut(part, " ")
				named[name] = "invalid_type"
			}
		} else {
			require.NotEmpty(t, a.at("errors"), string(a.Body))
			for i := range a.at("errors").([]any) {
				e := a.at("errors").([]any)[i].(map[string]any)
				named[e["field"].(string)] = e["code"].(string)
			}
		}
		for _, member := range wrong {
			assert.Equal(t, "invalid_type", named[member], "%s in %s", member, a.Body)
		}
	})
}

func TestEveryBodyMayHaveUnknownMembers(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		p := w.prepare(t, c.dialect)
		assert.Equal(t, w.status, p.send(golden.Edit(t, p.body, "made_up", `{"deep":[1,null]}`)).Status)
	})
}

func TestEveryBodyWithoutCardData(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		for _, object := range w.objects(t) {
			for _, member := range []string{"card_number", "cardNumber", "pan", "cvv", "cvc", "security_code"} {
				at := strings.TrimPrefix(object+"."+member, ".")
				w.try(t, c.dialect, at, `"123"`, at, "invalid_string")
			}
			at := strings.TrimPrefix(object+".card", ".")
			w.try(t, c.dialect, at, `{"holder":"Ana"}`, at, "invalid_string")
			at = strings.TrimPrefix(object+".note", ".")
			w.try(t, c.dialect, at, `"4111-1111-1111-1111"`, at, "invalid_string")
			w.try(t, c.dialect, at, `"4111-1111-1111-1112"`, "", "") // no card: its check digit is wrong
		}
	})
}

func TestEveryBodyMustBeAnObject(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		p := w.prepare(t, c.dialect)
		before := p.m.records()
		for _, malformed := range []string{
			p.body[:len(p.body)-1], p.body + "{}", p.body + ",", "null", "[]", `"text"`, "7", "{'a':1}", `{"a":1,}`, `{"a":1,"a":2}`,
			`{"made_up":{"b":1,"b":1}}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":+1}`, "\ufeff{}", "\ufeff" + p.body, "\ufeff", strings.Repeat(`{"a":`, 20_000),
		} {
			a := p.send(malformed, "Content-Type", "application/json")
			if c.dialect == "live" && slices.Contains([]string{"null", "[]", `"text"`, "7"}, malformed) { // body-not-object
				assert.Equal(t, http.StatusUnprocessableEntity, a.Status, malformed)
				assert.Equal(t, before, p.m.records())
				continue
			}
			a.problem(http.StatusBadRequest, "MALFORMED_JSON")
			assert.NotContains(t, string(a.Body), "errors")
			assert.Equal(t, strings.HasPrefix(malformed, "\ufeff"), strings.Contains(a.text("detail"), "byte order mark"), malformed)
		}
		a := p.send("", "Content-Type", "application/json")
		if !w.optional {
			a.problem(http.StatusBadRequest, "MALFORMED_JSON")
			assert.Equal(t, before, p.m.records())
		}
	})
}

func TestEveryBodyIsAnnounced(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		p := w.prepare(t, c.dialect)
		for _, contentType := range []string{"", "text/plain", "text/json", "application/x-www-form-urlencoded", "application/problem+json"} {
			p.send(p.body, "Content-Type", contentType).problem(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")
		}
		assert.Equal(t, w.status, p.send(p.body, "Content-Type", "application/json;charset=UTF-8").Status)
	})
}

func TestEveryBodyHasAtMostAMebibyte(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		p := w.prepare(t, c.dialect)
		p.send(pad(p.body, 1<<20+1)).problem(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE")
		assert.Equal(t, w.status, p.send(pad(p.body, 1<<20)).Status)
	})
}

// The checks come in this order, whatever else is wrong: path, method,
// credentials, size, content type, JSON, rules, stored state.
func TestEveryOrderOfChecks(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		p := w.prepare(t, c.dialect)
		before := p.m.records()
		long := strings.Repeat("x", 1<<20+1)
		anonymous := []string{"Authorization", "", "apiKey", "", "Content-Type", "text/plain"}
		p.m.call(p.method, p.path+"/more/still", long, anonymous...).problem(http.StatusNotFound, "UNKNOWN_PATH")
		p.m.call(http.MethodDelete, p.path, long, anonymous...).problem(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
		p.send(long, anonymous...).problem(http.StatusUnauthorized, "UNAUTHORIZED")
		p.send(long, "Content-Type", "text/plain").problem(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE")
		p.send("{", "Content-Type", "text/plain").problem(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")
		assert.Equal(t, before, p.m.records())

		record := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
		if !record.MatchString(p.path) {
			return
		}
		p.path = record.ReplaceAllString(p.path, unknownID)
		p.send("{").problem(http.StatusBadRequest, "MALFORMED_JSON")
		w.refused(p.send(golden.Edit(t, p.body, "cvv", "1")), c.dialect, "cvv", "invalid_string")
		assert.Equal(t, http.StatusNotFound, p.send(p.body).Status)
	})
}

// Another environment's key, another surface's header.
func TestEveryCredential(t *testing.T) {
	t.Parallel()
	each(t, func(c contract) {
		t, w := c.t, c.w
		p := w.prepare(t, c.dialect)
		for _, header := range [][]string{
			{"Authorization", "", "apiKey", ""},
			{"Authorization", "", "apiKey", "sk_live_mock"},
			{"Authorization", "", "apiKey", "pk_test_mock"},
			{"Authorization", "Bearer sk_test_other", "apiKey", key},
		} {
			a := p.send(p.body, header...).problem(http.StatusUnauthorized, "UNAUTHORIZED")
			assert.Equal(t, "Unauthorized", a.at("title"))
		}
		if w.v1 { // the apiKey header only
			p.send(p.body, "Authorization", "Bearer "+key, "apiKey", "").problem(http.StatusUnauthorized, "UNAUTHORIZED")
		}
	})
}

// try changes one member of the body and checks the response: success if field
// is "", else that one error, and nothing stored.
func (w write) try(t *testing.T, dialect, member, value, field, code string) {
	t.Helper()
	p := w.prepare(t, dialect)
	before := p.m.records()
	a := p.send(golden.Edit(t, p.body, member, value))
	if status := w.other[member]; field == "" && status != 0 && value == golden.Missing {
		w.status = status
	}
	if field == "" {
		assert.Equal(t, w.status, a.Status, "%s: %s\n%s", member, value, a.Body)
		return
	}
	w.refused(a, dialect, field, code)
	assert.Equal(t, before, p.m.records(), "%s: %s", member, value)
}

// refused checks that one member was rejected, in the dialect's form.
func (w write) refused(a response, dialect, field, code string) {
	a.t.Helper()
	status := http.StatusBadRequest
	if w.v1 || w.plain || dialect == "live" {
		status = http.StatusUnprocessableEntity
	}
	if !w.plain {
		a.problem(status, "VALIDATION_ERROR").field(field, code)
		return
	}
	require.Equal(a.t, status, a.Status, string(a.Body))
	assert.Equal(a.t, "VALIDATION_ERROR", a.text("error"))
	assert.True(a.t, strings.HasPrefix(a.text("message"), field+" "), string(a.Body))
	assert.NotContains(a.t, a.text("message"), "; ")
}

// members lists the paths of all members of the body except the caller's own.
func (w write) members(t *testing.T) []string {
	t.Helper()
	var paths []string
	w.walk(t, func(path string, _ any) { paths = append(paths, path) })
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" || strings.HasSuffix(path, "]") })
}

// objects lists the paths of all objects in the body; "" is the body.
func (w write) objects(t *testing.T) []string {
	t.Helper()
	var paths []string
	w.walk(t, func(path string, v any) {
		if _, ok := v.(map[string]any); ok {
			paths = append(paths, path)
		}
	})
	return paths
}

func (w write) valueAt(t *testing.T, member string) string {
	t.Helper()
	var found []byte
	w.walk(t, func(path string, v any) {
		if path == member {
			var err error
			found, err = json.Marshal(v)
			require.NoError(t, err)
		}
	})
	require.NotNil(t, found, member)
	return string(found)
}

func (w write) walk(t *testing.T, visit func(path string, v any)) {
	t.Helper()
	var root any
	require.NoError(t, json.Unmarshal([]byte(w.body), &root))
	var walk func(path string, v any)
	walk = func(path string, v any) {
		visit(path, v)
		if slices.Contains(w.free, path) {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				walk(strings.TrimPrefix(path+"."+name, "."), value)
			}
		case []any:
			for i, value := range v {
				walk(path+"["+strconv.Itoa(i)+"]", value)
			}
		}
	}
	walk("", root)
}

// kind returns the JSON type by the first byte.
func kind(value string) byte {
	switch c := value[0]; c {
	case 't', 'f':
		return 't'
	case '"', '[', '{', 'n':
		return c
	default:
		return '0'
	}
}
