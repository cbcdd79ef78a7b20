package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuiltInOrder(t *testing.T) {
	t.Parallel()
	order, err := LoadOrder("")
	require.NoError(t, err)

	charge := order.Charge("ref")

	assert.Equal(t, int64(2*4290+890+6000), charge.Amount)
	assert.Equal(t, "ref", charge.ExternalRef)
	assert.Len(t, charge.Products, 3)
	assert.Equal(t, "Maria Oliveira", charge.Buyer.Name)
}

func TestOrderFromFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.json")
	require.NoError(t, os.WriteFile(file, []byte(minimal), 0o600))

	order, err := LoadOrder(file)

	require.NoError(t, err)
	assert.Equal(t, int64(250), order.Total())
}

const minimal = `{
  "number": "1",
  "buyer": {"name": "Ana", "email": "ana@example.com"},
  "items": [{"name": "Pão", "price": 125, "quantity": 2}]
}`

// Each error names the file, the field and the rule.
func TestBadOrders(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ from, to, want string }{
		"no object":        {minimal, `[]`, "the file: must be an object in { }"},
		"text for flag":    {`"price"`, `"tangible": "no", "price"`, "items[0].tangible: must be true or false"},
		"number for text":  {`"Pão"`, `7`, "items[0].name: must be a string in quotes"},
		"text for object":  {`"name": "Ana"`, `"address": "Rua"`, "buyer.address: must be an object in { }"},
		"unknown field":    {`"price"`, `"prise"`, "items[0].prise: no such field exists"},
		"wrong type":       {`125`, `"125"`, "items[0].price: must be a whole number"},
		"fraction":         {`125`, `1.25`, "items[0].price: must be a whole number"},
		"object for list":  {`[{"name": "Pão", "price": 125, "quantity": 2}]`, `{}`, "items: must be a list in [ ]"},
		"missing price":    {`"price": 125, `, ``, "items[0].price: is required"},
		"null price":       {`125`, `null`, "items[0].price: is required"},
		"missing quantity": {`, "quantity": 2`, ``, "items[0].quantity: is required and must be at least 1"},
		"quantity 0":       {`"quantity": 2`, `"quantity": 0`, "items[0].quantity: is required and must be at least 1"},
		"quantity big":     {`"quantity": 2`, `"quantity": 1000000`, "items[0].quantity: "},
		"price negative":   {`125`, `-1`, "items[0].price: "},
		"sum too big":      {`125`, `100000000`, "items: their sum: "},
		"sum of nothing":   {`125`, `0`, "items: their sum: "},
		"no items":         {`[{"name": "Pão", "price": 125, "quantity": 2}]`, `[]`, "items: "},
		"no number":        {`"1"`, `""`, "number: is required"},
		"no e-mail":        {`, "email": "ana@example.com"`, ``, "buyer.email: "},
		"bad e-mail":       {`ana@example.com`, `ana`, "buyer.email: "},
		"document":         {`"name": "Ana"`, `"name": "Ana", "document": {"type": "XX", "number": "1"}`, "buyer.document.type: "},
		"field twice":      {`"number": "1"`, `"number": "1", "number": "2"`, `line 2: number: duplicate object member name`},
		"missing comma":    {`"1",`, `"1"`, "line 3: "},
		"cut off":          {`]` + "\n}", ``, "line 4: "},
		"more after it":    {`]` + "\n}", "]\n}\n{}", "line 6: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(minimal, tc.from, tc.to, 1)
			require.NotEqual(t, minimal, text, "the case changes nothing")
			file := filepath.Join(t.TempDir(), "bad.json")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))

			_, err := LoadOrder(file)

			assert.ErrorContains(t, err, file+": "+tc.want)
		})
	}
}

func TestAllBrokenRulesAtOnce(t *testing.T) {
	t.Parallel()
	_, broken := parseOrder([]byte(`{"number":"1","buyer":{"name":"Ana"},"items":[{"name":"","price":-1,"quantity":1}]}`))
	require.Len(t, broken, 3)
	for i, field := range []string{"buyer.email: ", "items[0].name: ", "items[0].price: "} {
		assert.ErrorContains(t, broken[i], field)
	}
}

func TestNoSuchFile(t *testing.T) {
	t.Parallel()
	_, err := LoadOrder(filepath.Join(t.TempDir(), "none.json"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
