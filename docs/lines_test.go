package docs_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The texts say how many lines the shops have, without comments and blank lines.
func TestTheTextsCountTheLinesOfTheShops(t *testing.T) {
	t.Parallel()
	shop := codeLines(t, "../examples/merchant/shop.go")
	for file, text := range map[string]string{
		"../README.md":                   "[a shop of %d lines](examples/merchant)",
		"merchant.md":                    "[examples/merchant](../examples/merchant/shop.go): %d lines",
		"../examples/merchant/README.md": "# A shop in %d lines\n",
	} {
		assert.Contains(t, source(t, file), fmt.Sprintf(text, shop), file)
	}
	service, sum := source(t, "../examples/service/README.md"), 0
	for _, name := range []string{"shop.go", "http.go", "main.go", "schema.sql"} {
		n := codeLines(t, filepath.Join("../examples/service", name))
		assert.Contains(t, service, fmt.Sprintf("| [%s](%s) | %d |", name, name, n))
		if strings.HasSuffix(name, ".go") {
			sum += n
		}
	}
	said := regexp.MustCompile(`(?m)^# A shop's backend in (\d+) lines$`).FindStringSubmatch(service)
	require.Len(t, said, 2)
	assert.Equal(t, fmt.Sprint((sum+5)/10*10), said[1], "the title rounds the lines of Go to tens")
}

// codeLines counts the lines of a file that have code, in Go or in SQL.
func codeLines(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	has := make(map[int]bool)
	if filepath.Ext(file) == ".sql" {
		for i, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "--")
			has[i] = strings.TrimSpace(code) != ""
		}
	} else {
		files := token.NewFileSet()
		of := files.AddFile(file, files.Base(), len(text))
		var s scanner.Scanner
		s.Init(of, text, nil, 0) // without comments
		for pos, kind, word := s.Scan(); kind != token.EOF; pos, kind, word = s.Scan() {
			if kind == token.SEMICOLON && word == "\n" { // inserted where a line ends
				continue
			}
			first := of.Line(pos)
			for i, line := range strings.Split(word, "\n") { // a string may have several
				has[first+i] = has[first+i] || kind != token.STRING || strings.TrimSpace(line) != ""
			}
		}
	}
	n := 0
	for _, code := range has {
		if code {
			n++
		}
	}
	return n
}
