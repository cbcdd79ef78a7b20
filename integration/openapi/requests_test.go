package openapi_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/mockserver"
)

var perOperation = flag.Int("requests", 300, "generated requests for each operation and dialect")

// difference is a request on which the document and the mock disagree.
type difference struct {
	field   string // the field that one of them rejects; "*" is any
	message string // prefix of the rule that the document can't express; "" if only the document rejects
	reason  string
}

// differences lists every accepted difference. The test must find each row at
// least once and no other difference.
var differences = []difference{
	{"*", "contains card data", "card numbers are found by their issuer and check digit, card data by its name"},
	{"pixWebhookUrl", "", "plain http is accepted if webhookUrl is sent too: the contract has two variants of the body"},
	{"pix_key_value", "must be", "a key must have the format of its type and valid check digits"},
	{"expires_at", "must be after", "the gateway's clock"},
	{"trial_end", "must be after", "the gateway's clock"},
	{"products[].currency", "must be ", "all products of a link have one currency"},
	{"*", "must be an e-mail", "mail can't be sent to every address that the format email allows"},
	{"*", "must be an https URL", "a URL with a user name or without a host"},
	{"*", "is not a member of this request", "a Pix Automatico of a live gateway: with a closed schema, generated clients could not send members that a later gateway knows"},
	{"*", "must be an http or https URL", "a URL with a user name or without a host"},
}

// TestTheDocumentAndTheMockAgreeOnGeneratedRequests generates requests from
// the schemas, valid ones and ones that break a rule or two, and compares the
// verdicts of the document and the mock.
func TestTheDocumentAndTheMockAgreeOnGeneratedRequests(t *testing.T) { //nolint:tparallel // the group ends before the rows are counted
	t.Parallel()
	found := make(chan int, 1<<16)
	t.Run("dialects", func(t *testing.T) {
		for name, dialect := range map[string]mockserver.Dialect{"document": mockserver.Document, "live": mockserver.Live} {
			d := open(t, docs.OpenAPI(dialect == mockserver.Live), false)
			for _, o := range d.operations() {
				t.Run(name+" "+o.id, func(t *testing.T) {
					t.Parallel()
					g := newGenerator(t, dialect, o)
					for range *perOperation {
						g.one(found)
					}
				})
			}
		}
	})
	close(found)
	hits := map[int]int{}
	for i := range found {
		hits[i]++
	}
	for i, row := range differences {
		assert.Positive(t, hits[i], "no request differs in %s (%s): delete the row", row.field, row.reason)
	}
}

// generator generates requests for one operation.
type generator struct {
	t       *testing.T
	d       *document
	gw      *mockserver.Server
	o       operation
	rand    *rand.Rand
	schema  map[string]any // of the body
	check   *jsonschema.Schema
	samples []any // bodies that are valid
}

func newGenerator(t *testing.T, dialect mockserver.Dialect, o operation) *generator {
	t.Helper()
	h := fnv.New64()
	_, _ = h.Write([]byte(o.id))
	g := &generator{
		t: t, d: open(t, docs.OpenAPI(dialect == mockserver.Live), false), o: o,
		gw:   mockserver.Run(t, mockserver.WithDialect(dialect)),
		rand: rand.New(rand.NewPCG(h.Sum64(), 1)),
	}
	path := []string{"paths", o.path, o.method, "requestBody", "content", "application/json"}
	if g.schema = g.d.object(append(path, "schema")...); g.schema == nil {
		return g
	}
	g.check = g.d.schema(t, append(path, "schema")...)
	for _, name := range sorted(g.d.object(append(path, "examples")...)) {
		g.samples = append(g.samples, g.d.object(append(path, "examples", name)...)["value"])
	}
	if len(g.samples) == 0 {
		g.samples = []any{map[string]any{}}
	}
	return g
}

// one generates a request and compares the two verdicts.
func (g *generator) one(found chan<- int) {
	if g.check == nil {
		g.query(found)
		return
	}
	body := clone(g.samples[g.rand.IntN(len(g.samples))])
	if m, ok := body.(map[string]any); ok {
		g.fill(g.schema, m)
		for range g.rand.IntN(3) {
			g.change(g.schema, m)
		}
	}
	text := encode(g.t, body)
	g.compare(text, g.check.Validate(body), g.send(text), found)
}

// compare finds the row of a request on which the document and the mock
// disagree.
func (g *generator) compare(text string, rejects error, fields map[string]string, found chan<- int) {
	g.t.Helper()
	switch {
	case rejects == nil && len(fields) == 0, rejects != nil && len(fields) > 0:
		return
	case rejects == nil:
		for field, message := range fields {
			i := slices.IndexFunc(differences, func(d difference) bool {
				return (d.field == "*" || d.field == field || strings.HasSuffix(field, "."+d.field)) &&
					d.message != "" && strings.HasPrefix(message, d.message)
			})
			if !assert.GreaterOrEqual(g.t, i, 0, "the document allows %s, but the gateway reports: %s %s", text, field, message) {
				continue
			}
			found <- i
		}
	default:
		for _, field := range places(rejects) {
			i := slices.IndexFunc(differences, func(d difference) bool { return d.field == field && d.message == "" })
			if !assert.GreaterOrEqual(g.t, i, 0, "the gateway accepts %s, but the document does not: %v", text, rejects) {
				continue
			}
			found <- i
		}
	}
}

// send returns the fields that break a rule according to the mock, with the
// messages; none if the mock does not reject the body.
func (g *generator) send(body string) map[string]string {
	path := strings.NewReplacer("{id}", unknown, "{slug}", "nosuchlink", "{public_token}", "pk_1").Replace(g.o.path)
	r, err := http.NewRequestWithContext(g.t.Context(), strings.ToUpper(g.o.method), mockserver.BaseURL+path, strings.NewReader(body))
	require.NoError(g.t, err)
	r.Header.Set("Apikey", g.gw.Key())
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return g.verdict(r)
}

var listIndex = strings.NewReplacer("[0]", "[]", "[1]", "[]", "[2]", "[]", "[3]", "[]")

func (g *generator) verdict(r *http.Request) map[string]string {
	resp, err := g.gw.Transport().RoundTrip(r)
	require.NoError(g.t, err)
	defer func() { _ = resp.Body.Close() }()
	var problem struct {
		Code    string `json:"code"`
		Error   string `json:"error"`
		Message string `json:"message"`
		Detail  string `json:"detail"`
		Errors  []struct {
			Field   string `json:"field"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	require.NoError(g.t, json.NewDecoder(resp.Body).Decode(&problem))
	fields := map[string]string{}
	switch {
	case problem.Code == "VALIDATION_ERROR":
		for _, e := range problem.Errors {
			fields[listIndex.Replace(e.Field)] = e.Message
		}
		if len(problem.Errors) == 0 {
			fields[""] = problem.Detail
		}
	case problem.Error == "VALIDATION_ERROR": // all fields in one message
		for part := range strings.SplitSeq(problem.Message, "; ") {
			field, message, _ := strings.Cut(part, " ")
			fields[listIndex.Replace(field)] = message
		}
	case resp.StatusCode >= 500:
		g.t.Errorf("%d %s", resp.StatusCode, problem.Detail)
	}
	return fields
}

// places returns the fields that a schema rejects, innermost first.
func places(err error) []string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []string{""}
	}
	seen := map[string]bool{}
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			seen[fieldOf(e.InstanceLocation)] = true
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(invalid)
	return slices.Sorted(maps.Keys(seen))
}

func fieldOf(location []string) string {
	var b strings.Builder
	for _, part := range location {
		if _, err := strconv.Atoi(part); err == nil {
			b.WriteString("[]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = clone(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = clone(v[i])
		}
		return out
	default:
		return v
	}
}

// resolve follows references and the first choice of anyOf and allOf.
func (g *generator) resolve(v any) map[string]any {
	s, _ := v.(map[string]any)
	for {
		if to, ok := s["$ref"].(string); ok {
			s = g.d.object(strings.Split(to[2:], "/")...)
			continue
		}
		if _, known := s["type"]; known {
			return s
		}
		list, ok := s["anyOf"].([]any)
		if !ok {
			list, ok = s["allOf"].([]any)
		}
		if !ok {
			return s
		}
		s, _ = list[0].(map[string]any)
	}
}

// fill sets each missing field with a probability of one in four.
func (g *generator) fill(schema, body map[string]any) {
	schema = g.resolve(schema)
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range sorted(properties) {
		sub := g.resolve(properties[name])
		if _, there := body[name]; !there && g.rand.IntN(4) == 0 {
			values := g.values(sub)
			body[name] = values[g.rand.IntN(len(values))]
		}
		if m, ok := body[name].(map[string]any); ok {
			g.fill(sub, m)
		}
	}
}

// change changes or breaks one field somewhere in the body.
func (g *generator) change(schema, body map[string]any) {
	schema = g.resolve(schema)
	properties, _ := schema["properties"].(map[string]any)
	names := sorted(properties)
	if len(names) == 0 || g.rand.IntN(20) == 0 {
		body["unknown_member"] = g.anything()
		return
	}
	name := names[g.rand.IntN(len(names))]
	sub := g.resolve(properties[name])
	if m, ok := body[name].(map[string]any); ok && g.rand.IntN(3) > 0 {
		g.change(sub, m)
		return
	}
	if list, ok := body[name].([]any); ok && len(list) > 0 && g.rand.IntN(3) > 0 {
		items := g.resolve(sub["items"])
		if m, ok := list[0].(map[string]any); ok {
			g.change(items, m)
		} else {
			values := g.values(items)
			list[0] = values[g.rand.IntN(len(values))]
		}
		return
	}
	switch g.rand.IntN(5) {
	case 0:
		delete(body, name)
	case 1:
		body[name] = g.anything()
	default:
		values := g.values(sub)
		body[name] = values[g.rand.IntN(len(values))]
	}
}

// anything returns a value of any type.
func (g *generator) anything() any {
	values := []any{
		"x", "", " ", "4111111111111111", "4111 1111 1111 1111", json.Number("1"), json.Number("1.5"), json.Number("0"), json.Number("-1"),
		true, false, nil,
		[]any{},
		map[string]any{},
		[]any{nil},
		map[string]any{"card_number": "4111111111111111"},
	}
	return values[g.rand.IntN(len(values))]
}

// values returns the boundary values of a schema, on both sides.
func (g *generator) values(s map[string]any) []any {
	var list []any
	for _, v := range asList(s["enum"]) {
		text, _ := v.(string)
		list = append(list, v, strings.ToLower(text), " "+text)
	}
	kinds := asList(s["type"])
	switch {
	case len(list) > 0:
		return append(list, "nope")
	case slices.Contains(kinds, any("string")):
		return texts(s)
	case slices.Contains(kinds, any("integer")), slices.Contains(kinds, any("number")):
		return numbers(s)
	case slices.Contains(kinds, any("boolean")):
		return []any{true, false, "true"}
	case slices.Contains(kinds, any("array")):
		return g.arrays(s)
	default:
		m := map[string]any{}
		for _, name := range asList(s["required"]) {
			properties, _ := s["properties"].(map[string]any)
			values := g.values(g.resolve(properties[name.(string)]))
			m[name.(string)] = values[g.rand.IntN(len(values))]
		}
		return []any{m, map[string]any{}}
	}
}

func asList(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

func number(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

func numbers(s map[string]any) []any {
	list := []any{json.Number("1"), json.Number("1.0"), json.Number("1e2"), json.Number("1.5"), json.Number("-1"), json.Number("0")}
	for _, name := range []string{"minimum", "maximum"} {
		if n, ok := number(s[name]); ok {
			for _, delta := range []int64{-1, 0, 1} {
				list = append(list, json.Number(strconv.FormatInt(n+delta, 10)))
			}
		}
	}
	return list
}

func texts(s map[string]any) []any {
	list := []any{"x", "", " ", "São Paulo", "4111111111111111", "a\u0000b"}
	for _, name := range []string{"minLength", "maxLength"} {
		if n, ok := number(s[name]); ok {
			for _, delta := range []int64{-1, 0, 1} {
				list = append(list, strings.Repeat("x", int(max(0, n+delta))), strings.Repeat("é", int(max(0, n+delta))))
			}
		}
	}
	pattern, _ := s["pattern"].(string)
	switch {
	case s["format"] == "email":
		list = append(list, "a@example.com", "a@b", "a", "a@", "@b", "a b@example.com", "Ana <a@example.com>", "a@example.com ")
	case s["format"] == "uri":
		list = append(list, "https://example.com/x", "http://example.com", "HTTPS://EXAMPLE.COM/", "https://", "ftp://example.com",
			"https://user:pw@example.com/", "https://exa mple.com", "example.com", "https:///x")
	case s["format"] == "date-time", s["format"] == "date":
		list = append(list, "2030-01-04T12:00:00Z", "2030-01-04t12:00:00z", "2030-01-04T12:00:00.5-03:00", "2030-01-04T12:00:00",
			"2030-01-04", "2030-13-01T00:00:00Z", "2001-01-01T00:00:00Z")
	case s["format"] == "ipv4", s["format"] == "ipv6":
		list = append(list, "192.0.2.1", "::1", "2001:db8::1", "256.0.0.1", "1.2.3", "fe80::1%eth0", "::ffff:192.0.2.1")
	case strings.HasPrefix(pattern, "^pg"):
		list = append(list, "pgct_abc", "pgpm_abc", "pgct_", "PGCT_abc", "xpgct_abc", "pgct")
	case pattern != "":
		list = append(list, "SP", "1", "S-", "SPX", "SPXY", "11987654321", "BR", "br", "b1")
	}
	return list
}

func (g *generator) arrays(s map[string]any) []any {
	items := g.values(g.resolve(s["items"]))
	var list []any
	for _, name := range []string{"minItems", "maxItems"} {
		n, ok := number(s[name])
		if !ok {
			n = 1
		}
		for _, delta := range []int64{-1, 0, 1} {
			array := []any{}
			for range max(0, n+delta) {
				array = append(array, items[0])
			}
			list = append(list, array)
		}
	}
	return append(list, []any{items[g.rand.IntN(len(items))]})
}

// query sends a list query and compares the verdicts on each parameter.
func (g *generator) query(found chan<- int) {
	parameters, _ := g.d.object("paths", g.o.path, g.o.method)["parameters"].([]any)
	q := url.Values{}
	var rejects error
	for i := range parameters {
		p := g.d.object("paths", g.o.path, g.o.method, "parameters", strconv.Itoa(i))
		if p["in"] != "query" || g.rand.IntN(3) > 0 || p["name"] == "cursor" { // a cursor comes from an earlier page
			continue
		}
		_, pointer := g.d.at("paths", g.o.path, g.o.method, "parameters", strconv.Itoa(i))
		s := g.d.compiled[pointer]
		if s == nil {
			var err error
			s, err = g.d.compiler.Compile("openapi.json" + pointer + "/schema")
			require.NoError(g.t, err)
			g.d.compiled[pointer] = s
		}
		schema, _ := p["schema"].(map[string]any)
		text, value := g.parameter(g.resolve(schema))
		if text == "" {
			continue // an empty parameter counts as omitted
		}
		q.Set(p["name"].(string), text)
		if err := s.Validate(value); err != nil {
			rejects = err
		}
	}
	path := strings.NewReplacer("{id}", unknown, "{slug}", "nosuchlink", "{public_token}", "pk_1").Replace(g.o.path)
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, mockserver.BaseURL+path+"?"+q.Encode(), nil)
	require.NoError(g.t, err)
	r.Header.Set("Apikey", g.gw.Key())
	g.compare("?"+q.Encode(), rejects, g.verdict(r), found)
}

// parameter returns a value as it is written in a query and as its schema sees it.
func (g *generator) parameter(s map[string]any) (string, any) {
	if slices.Contains(asList(s["type"]), any("array")) {
		items := g.resolve(s["items"])
		var texts []string
		var values []any
		for range 1 + g.rand.IntN(2) {
			text, value := g.parameter(items)
			if text == "" || strings.Contains(text, ",") {
				continue
			}
			texts, values = append(texts, text), append(values, value)
		}
		return strings.Join(texts, ","), values
	}
	values := g.values(s)
	v := values[g.rand.IntN(len(values))]
	text := fmt.Sprint(v)
	kinds := asList(s["type"])
	if slices.Contains(kinds, any("integer")) {
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return text, json.Number(text)
		}
		return text, text
	}
	if slices.Contains(kinds, any("boolean")) && (text == "true" || text == "false") {
		return text, text == "true"
	}
	return text, text
}
