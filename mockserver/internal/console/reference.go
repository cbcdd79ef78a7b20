package console

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/internal/docs"
)

// reference is the OpenAPI documents as the pages need them.
type reference struct {
	operations []*operation // of the interface, in the order of their paths
	control    []*operation // of the control plane
}

// operation is one call.
type operation struct {
	ID, Method, Path, Summary, Tag string

	Parameters []parameter
	Examples   []example
	HasBody    bool
	Responses  []string // statuses
}

type parameter struct {
	Name, In, Description string

	Required bool
	Values   []string // of a closed list
}

type example struct{ Name, Body string }

// The parts of an OpenAPI document that are read here.
type (
	openAPI struct {
		Paths map[string]map[string]openAPIOperation `json:"paths"`
	}
	openAPIOperation struct {
		OperationID string             `json:"operationId"`
		Summary     string             `json:"summary"`
		Tags        []string           `json:"tags"`
		Parameters  []openAPIParameter `json:"parameters"`
		RequestBody struct {
			Content map[string]struct {
				Examples map[string]struct {
					Value json.RawMessage `json:"value"`
				} `json:"examples"`
			} `json:"content"`
		} `json:"requestBody"`
		Responses map[string]any `json:"responses"`
	}
	openAPIParameter struct {
		Ref         string `json:"$ref"`
		Name        string `json:"name"`
		In          string `json:"in"`
		Description string `json:"description"`
		Required    bool   `json:"required"`
		Schema      struct {
			Type  any      `json:"type"`
			Enum  []string `json:"enum"`
			Items struct {
				Enum []string `json:"enum"`
			} `json:"items"`
		} `json:"schema"`
	}
)

func readReference(live bool) reference {
	return reference{operationsOf(docs.OpenAPI(live)), operationsOf(docs.ControlOpenAPI())}
}

func operationsOf(text []byte) (list []*operation) {
	var doc openAPI
	if json.Unmarshal(text, &doc) != nil {
		return nil // a test reads both documents
	}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			list = append(list, o.operation(strings.ToUpper(method), path))
		}
	}
	slices.SortFunc(list, func(a, b *operation) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	return list
}

func (o openAPIOperation) operation(method, path string) *operation {
	op := &operation{ID: o.OperationID, Method: method, Path: path, Summary: o.Summary}
	if len(o.Tags) > 0 {
		op.Tag = o.Tags[0]
	}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			continue // X-Request-Id, which every request may have
		}
		values := p.Schema.Enum
		if len(values) == 0 {
			values = p.Schema.Items.Enum
		}
		if p.Schema.Type == "boolean" {
			values = []string{"true", "false"}
		}
		op.Parameters = append(op.Parameters, parameter{
			Name: p.Name, In: p.In, Description: p.Description, Required: p.Required, Values: values,
		})
	}
	for _, content := range o.RequestBody.Content {
		op.HasBody = true
		for _, name := range slices.Sorted(maps.Keys(content.Examples)) {
			op.Examples = append(op.Examples, example{name, indented(string(content.Examples[name].Value))})
		}
	}
	op.Responses = slices.Sorted(maps.Keys(o.Responses))
	return op
}

// parameters returns the query parameters of an operation.
func (r reference) parameters(id string) (list []parameter) {
	for _, op := range r.operations {
		if op.ID == id {
			for _, p := range op.Parameters {
				if p.In == "query" {
					list = append(list, p)
				}
			}
		}
	}
	return list
}
