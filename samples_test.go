package gateway_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// Live gateways require the payer's document for a Pix, so whoever copies a sample
// without one gets 422.
func TestEveryPixSampleHasADocument(t *testing.T) {
	t.Parallel()
	create := regexp.MustCompile(`(?s)gateway\.TransactionParams\{\n.*?\n(?://\s)?\t*\}`)
	overHTTP := regexp.MustCompile(`(?s)"?method"?: ?"pix".*?products`)
	samples, requests := 0, 0
	for _, file := range append(guides(t), "doc.go", "examples/first/main.go", "examples/first/webhook/main.go") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, sample := range overHTTP.FindAllString(string(text), -1) {
			requests++
			assert.Contains(t, sample, "document", file)
		}
		for _, sample := range create.FindAllString(string(text), -1) {
			if strings.Contains(sample, "gateway.Pix,") {
				samples++
				named := strings.Contains(sample, "Document:") || strings.Contains(sample, "ID:")
				assert.True(t, named || strings.Contains(sample, "o.Buyer"), "%s: a sample without the buyer's document:\n%s", file, sample)
			}
		}
	}
	assert.GreaterOrEqual(t, requests, 5, "testing and mockgateway")
	assert.GreaterOrEqual(t, samples, 4, "README, doc.go, payments and the first program")
}

// The samples of doc.go, the README and the guides are copies of examples. Their
// output is the same in both dialects, except where a sample shows a difference.
func TestTheExamplesRunInTheLiveDialect(t *testing.T) {
	t.Parallel()
	differing := []string{
		"ExampleClient_Do",                     // reads a list without the client's types: list-envelope
		"ExampleTransfersService_Create_twice", // a repeated reference: repeated-transfer
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^Example", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), liveExamples+"=1")
	output, _ := cmd.CombinedOutput() // an error says only that an example failed
	ran := regexp.MustCompile(`(?m)^--- (PASS|FAIL): (Example\S+)`).FindAllStringSubmatch(string(output), -1)
	assert.Greater(t, len(ran), 40, "%s", output)
	var failed []string
	for _, example := range ran {
		if example[1] == "FAIL" {
			failed = append(failed, example[2])
		}
	}
	assert.ElementsMatch(t, differing, failed, "%s", output)
	assert.NotContains(t, string(output), "panic:")
}

// The first program, which the README shows, runs in both dialects.
func TestTheFirstProgramRunsInBothDialects(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("examples/first/main.go")
	require.NoError(t, err)
	const plain = "mockserver.New()"
	require.Contains(t, string(text), plain)
	dir := t.TempDir()
	files := map[string]string{
		"main.go": strings.Replace(string(text), plain, "mockserver.New(mockserver.WithDialect(dialect()))", 1),
		"dialect.go": `package main

import (
	"os"

	"github.com/gateway-go/gateway/mockserver"
)

func dialect() mockserver.Dialect {
	if len(os.Args) > 1 {
		return mockserver.Live
	}
	return mockserver.Document
}
`,
	}
	program := filepath.Join(dir, "first.exe")
	build := []string{"build", "-ldflags=-s -w", "-o", program}
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		build = append(build, file)
	}
	output, err := exec.CommandContext(t.Context(), "go", build...).CombinedOutput()
	require.NoError(t, err, "%s", output)
	for _, args := range [][]string{nil, {"live"}} {
		output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", args, output)
		assert.Contains(t, string(output), "Paid: BRL 154.70", args)
	}
}

// The request of the first program is accepted in both dialects, and rejected by
// live gateways without the document.
func TestTheFirstChargeIsAcceptedInBothDialects(t *testing.T) {
	t.Parallel()
	params := gateway.TransactionParams{
		ExternalRef: "order-1001", Amount: 15470, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Maria Oliveira", Email: "maria@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Café em grãos, 500 g", Price: 15470}},
	}
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		gw := mockserver.Run(t, mockserver.WithDialect(dialect))
		charge, err := gw.Client().Transactions.Create(t.Context(), params)
		require.NoError(t, err)
		require.NoError(t, gw.Transactions.Pay(charge.ID))
		charge, err = gw.Client().Transactions.Get(t.Context(), charge.ID)
		require.NoError(t, err)
		assert.True(t, charge.Settled())
		assert.True(t, charge.AmountIs(15470))
	}
	params.Buyer.Document = nil
	_, err := mockserver.Run(t, mockserver.WithDialect(mockserver.Live)).Client().Transactions.Create(t.Context(), params)
	require.ErrorIs(t, err, gateway.ErrValidation)
}
