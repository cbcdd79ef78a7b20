package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func Example() {
	main()

	// Output:
	// unknown, repeat: order-1001
	// to pay: BRL 49.90
	// ship order-1001
	// refunded: 990 partially_refunded
}

// Coding agents read only llms.txt, so it has the whole program.
func TestTheProgramIsInLLMsTxt(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	text, err := os.ReadFile("../../llms.txt")
	require.NoError(t, err)
	if !strings.Contains(string(text), "\n```go\n"+string(program)+"```\n") {
		t.Error("llms.txt does not contain main.go: copy it")
	}
}
