package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

//go:embed order.json
var embeddedOrder []byte

// Order is the shop's own file: who buys, and what. Prices are in cents.
type Order struct {
	Number string              `json:"number"`
	Buyer  gateway.BuyerParams `json:"buyer"`
	Items  []Item              `json:"items"`
}

// Item is one line of the order. Price and quantity are pointers because a
// missing one must not count as zero, or as one.
type Item struct {
	Name     string `json:"name"`
	SKU      string `json:"sku"`
	Price    *int64 `json:"price"` // of one unit
	Quantity *int   `json:"quantity"`
	Tangible bool   `json:"tangible"`
}

// LoadOrder reads the file, or the built-in order if the name is empty. Its
// errors name the file, the field and the rule.
func LoadOrder(file string) (*Order, error) {
	name, text := "order.json (built in)", embeddedOrder
	if file != "" {
		var err error
		if text, err = os.ReadFile(file); err != nil { //nolint:gosec // the user names the file
			return nil, fmt.Errorf("order: %w", err)
		}
		name = file
	}
	order, broken := parseOrder(text)
	for i, rule := range broken {
		broken[i] = fmt.Errorf("%s: %w", name, rule)
	}
	return order, errors.Join(broken...)
}

// parseOrder returns the order, or all rules that it breaks.
func parseOrder(text []byte) (*Order, []error) {
	order := new(Order)
	if err := json.Unmarshal(text, order, json.RejectUnknownMembers(true)); err != nil {
		return nil, []error{explain(err, text)}
	}
	var broken []error
	if order.Number == "" {
		broken = append(broken, errors.New("number: is required"))
	}
	for i, item := range order.Items {
		if item.Price == nil {
			broken = append(broken, fmt.Errorf("items[%d].price: is required", i))
		}
		if item.Quantity == nil || *item.Quantity < 1 {
			broken = append(broken, fmt.Errorf("items[%d].quantity: is required and must be at least 1", i))
		}
	}
	if broken == nil {
		broken = order.breaks()
	}
	if broken != nil {
		return nil, broken
	}
	return order, nil
}

// breaks returns the gateway's own rules that the order breaks. The client
// checks them all, so nothing has to be sent.
func (o *Order) breaks() []error {
	err := o.Charge("any").Validate()
	if err == nil {
		return nil
	}
	var invalid *gateway.ValidationError
	if !errors.As(err, &invalid) {
		return []error{err}
	}
	var broken, sum []error
	for _, field := range invalid.Fields {
		if field.Field == "amount" {
			sum = append(sum, fmt.Errorf("items: their sum: %s", field.Message))
			continue
		}
		name := strings.Replace(field.Field, "products", "items", 1) // their name in the file
		broken = append(broken, fmt.Errorf("%s: %s", name, field.Message))
	}
	if broken != nil {
		return broken // the sum of invalid items is meaningless
	}
	return sum
}

// Total is what the buyer pays, in cents.
func (o *Order) Total() int64 {
	var total int64
	for _, item := range o.Items {
		total += *item.Price * int64(*item.Quantity)
	}
	return total
}

// Charge turns the order into the request for a Pix charge.
func (o *Order) Charge(reference string) gateway.TransactionParams {
	products := make([]gateway.Product, len(o.Items))
	for i, item := range o.Items {
		products[i] = gateway.Product{
			Name: item.Name, SKU: item.SKU, Price: *item.Price, Quantity: *item.Quantity, Tangible: item.Tangible,
		}
	}
	return gateway.TransactionParams{
		ExternalRef: reference,
		Amount:      o.Total(),
		Method:      gateway.Pix,
		Buyer:       o.Buyer,
		Products:    products,
	}
}

// explain reports where in the file the JSON is wrong, in the file's own
// terms.
func explain(err error, text []byte) error {
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		field := spec.FieldPath(semantic.JSONPointer)
		if field == "" {
			field = "the file"
		}
		if errors.Is(err, json.ErrUnknownName) {
			return fmt.Errorf("%s: no such field exists", field)
		}
		return fmt.Errorf("%s: must be %s", field, wanted(semantic.GoType))
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		line := 1 + strings.Count(string(text[:min(int64(len(text)), syntax.ByteOffset)]), "\n")
		if field := spec.FieldPath(syntax.JSONPointer); field != "" {
			return fmt.Errorf("line %d: %s: %w", line, field, syntax.Err)
		}
		return fmt.Errorf("line %d: %w", line, syntax.Err)
	}
	return err
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list in [ ]"
	case reflect.Struct, reflect.Pointer:
		return "an object in { }"
	default:
		return "a string in quotes"
	}
}
