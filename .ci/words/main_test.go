package gateway_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Guides, comments and strings are written in plain technical English. This test
// finds the most frequent mistakes and suggests replacements.
func TestTextUsesStandardTerms(t *testing.T) {
	t.Parallel()
	list := words()
	check := func(file string, line int, text string) {
		for _, word := range list {
			for _, found := range word.pattern.FindAllString(text, -1) {
				assert.Fail(t, "not standard English", "%s:%d: %q: write %s", file, line, found, word.instead)
			}
		}
	}
	for _, guide := range guides(t) {
		if guide == "CHANGELOG.md" {
			continue
		}
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		for i, line := range lines(string(text)) {
			check(guide, i+1, line)
		}
	}
	for _, file := range sources(t) {
		if file == "language_test.go" {
			continue
		}
		for _, text := range prose(t, file) {
			if strings.Contains(text.text, " ") || !strings.HasSuffix(file, "_test.go") { // a fixture may be an id such as "nobody"
				check(file, text.line, text.text)
			}
		}
	}
}

// The patterns match mistakes and do not match correct text.
func TestStandardTermsHaveNoFalsePositives(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"after a lost answer the client stops":               1,
		"HEAD is answered with 405":                          1,
		"`client-answer-size` is an id, p.Answered a field":  0,
		"an account that nobody else uses":                   1,
		"NoBody, http.NoBody":                                0,
		"the error was mended":                               1,
		"recommended, amendment":                             0,
		"the gateway refuses the request":                    1,
		"a create is refused with 409":                       1,
		"the issuer refuses the card; the charge is refused": 0,
		"| none: internal/spec |":                            1,
		"none: the client sends nothing":                     0,
		"the rest works as ever":                             1,
		"was everything, as every test does":                 0,
		"Nullable texts are empty":                           1,
		"20 where it is not sent":                            1,
		"the transaction is found again":                     1,
		"errors that pass are waited out":                    1,
		"the webhook tells of the payment":                   1,
		"the status tells whether it is paid":                0,
	} {
		got := 0
		for _, word := range words() {
			got += len(word.pattern.FindAllString(text, -1))
		}
		assert.Equal(t, want, got, text)
	}
}

type word struct {
	pattern *regexp.Regexp
	instead string
}

func words() []word {
	var list []word
	for pattern, instead := range map[string]string{
		`(?:^|[^\w.-])[Aa]nswer(?:s|ed|ing)?\b(?:[^\w-]|$)`:                             "response, returns",
		`\b(?:[Nn]o|[Ss]ome|[Aa]ny)body\b`:                                              "no one, someone, anyone; or who it is",
		`\b[Mm]end(?:s|ed|ing)?\b`:                                                      "fix",
		`\brefuses? (?:a|an|the|every|such an?) (?:request|call|delivery|write|create)`: "reject",
		`\brefused with (?:\d|\[?Err)`:                                                  "rejected with",
		`\| none: [^|]+ \|`:                                                             "not configurable",
		`\bas ever\b`:                                                                   "unaffected",
		`\b[Nn]ullable (?:texts|moments)\b`:                                             "nullable strings, timestamps",
		`\bwhere (?:it is|they are) not sent\b`:                                         "default …, if omitted",
		`\bfound again\b`:                                                               "recovered",
		`\bwaited out\b`:                                                                "retried",
		`\b(?:tells?|told) of\b`:                                                        "reports",
		`\bfor want of\b`:                                                               "for lack of",
	} {
		list = append(list, word{regexp.MustCompile(pattern), instead})
	}
	return list
}

type passage struct {
	text string
	line int
}

// prose returns the comments and strings of a Go file, without struct tags.
func prose(t *testing.T, file string) (found []passage) {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	set := token.NewFileSet()
	var s scanner.Scanner
	handle := set.AddFile(file, -1, len(source))
	s.Init(handle, source, nil, scanner.ScanComments)
	tag := regexp.MustCompile("^`\\w+:\"")
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return found
		}
		if kind == token.COMMENT || kind == token.STRING && !tag.MatchString(text) {
			found = append(found, passage{strings.Trim(text, "\"`"), set.Position(pos).Line})
		}
	}
}

// sources returns the Go files of the project.
func sources(t *testing.T) (found []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules" || len(entry.Name()) > 1 && entry.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			found = append(found, filepath.ToSlash(path))
		}
		return nil
	})
	require.NoError(t, err)
	return found
}
