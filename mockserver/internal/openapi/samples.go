package openapi

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// samples are the golden files, as the examples of operations.
type samples struct{ list []golden }

type golden struct {
	folder, name string // "transactions", "create_card"
	kind         string // "request", "response", or the status of an error
	live         bool
	value        jsontext.Value
}

func readSamples(dir string) (*samples, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil {
		return nil, err
	}
	s := &samples{}
	for _, path := range files {
		value, err := os.ReadFile(path) //nolint:gosec // of the module
		if err != nil {
			return nil, err
		}
		parts := strings.Split(strings.TrimSuffix(filepath.Base(path), ".json"), ".")
		g := golden{folder: filepath.Base(filepath.Dir(path)), name: parts[0], kind: parts[len(parts)-1], value: value}
		g.live = len(parts) == 3 && parts[1] == "live"
		s.list = append(s.list, g)
	}
	return s, nil
}

// operation returns the name of the operation that a file belongs to: the
// longest that its name begins with.
func (g golden) operation() string {
	best := ""
	for op := range spec.Operations() {
		if full := g.folder + "." + g.name; (full == op.Name || strings.HasPrefix(full, op.Name+"_")) && len(op.Name) > len(best) {
			best = op.Name
		}
	}
	if best == spec.CheckoutSessions.Resume.Name { // one endpoint
		return spec.CheckoutSessions.Open.Name
	}
	return best
}

// requests are the valid ones: a few are of one dialect only.
func (s *samples) requests(op spec.Operation, v spec.Variant) object {
	var out object
	for _, g := range s.list {
		if g.kind != "request" || g.operation() != op.Name {
			continue
		}
		if found, err := spec.Check(g.value, op.Rule, v); err == nil && len(found) == 0 {
			out.set(g.name, obj("value", g.value))
		}
	}
	return out
}

// responses are those of a dialect: a live file replaces the other one.
func (s *samples) responses(operation string, status int, live bool) object {
	var out object
	for _, g := range s.list {
		if g.kind != "response" || g.operation() != operation || g.live && !live || g.status(status) != status {
			continue
		}
		if _, there := out.get(g.name); !there || g.live {
			out.set(g.name, obj("value", g.value))
		}
	}
	return out
}

// status returns the status of a success: one body contains its own.
func (g golden) status(status int) int {
	var body struct {
		Status int `json:"status"`
	}
	if json.Unmarshal(g.value, &body) == nil && body.Status > 0 {
		return body.Status
	}
	if g.folder == "legacy" && strings.HasPrefix(g.name, "configure") {
		return 200
	}
	return status
}

// failing are the examples of an error response.
func (s *samples) failing(e httpapi.ErrorShape, live bool) object {
	var out object
	for _, g := range s.list {
		if g.error(live) == nil || g.kind != strconv.Itoa(e.Status) {
			continue
		}
		code, plain := g.code()
		if plain == e.Plain && slices.Contains(e.Codes, code) {
			out.set(g.example(), obj("$ref", "#/components/examples/"+g.example()))
		}
	}
	return out
}

// failures are all error examples, as components.
func (s *samples) failures(live bool) object {
	var out object
	for _, g := range s.list {
		if v := g.error(live); v != nil {
			out.set(g.example(), obj("value", v))
		}
	}
	return out
}

// example is the name of an error among the examples: two files may differ in
// their status or dialect only.
func (g golden) example() string {
	name := g.name + "." + g.kind
	if g.live {
		name += ".live"
	}
	return name
}

// error returns the body of an error that this gateway sends in a dialect.
func (g golden) error(live bool) jsontext.Value {
	if g.folder != "errors" || g.live != live && g.live {
		return nil
	}
	if code, _ := g.code(); code == "" {
		return nil
	}
	return g.value
}

func (g golden) code() (code string, plain bool) {
	var problem respond.Problem
	var short respond.Plain
	if json.Unmarshal(g.value, &problem) == nil && problem.Code != "" {
		return problem.Code, false
	}
	if json.Unmarshal(g.value, &short) == nil && short.Error != "" {
		return short.Error, true
	}
	return "", false
}
