// Command words finds the most frequent mistakes in guides, comments and strings, which
// are written in plain technical English, and suggests replacements:
//
//	go run ./.ci/words
package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	mistakes := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "testdata" || name == "node_modules" || len(name) > 1 && name[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md" || path == "CHANGELOG.md" {
			return nil
		}
		source, err := os.ReadFile(path) //nolint:gosec // a file of the project
		if err != nil {
			return err
		}
		for _, m := range check(path, source) {
			_, _ = fmt.Fprintln(os.Stdout, m)
			mistakes++
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
	}
	if err != nil || mistakes > 0 {
		os.Exit(1)
	}
}

// check returns the mistakes in a guide or in the prose of a Go file.
func check(path string, source []byte) (mistakes []string) {
	passages := guide(source)
	if filepath.Ext(path) == ".go" {
		passages = prose(path, source)
	}
	for _, p := range passages {
		if strings.HasSuffix(path, "_test.go") && !strings.Contains(p.text, " ") {
			continue // a fixture may be an id such as "nobody"
		}
		for _, word := range words {
			for _, found := range word.pattern.FindAllString(p.text, -1) {
				mistakes = append(mistakes, fmt.Sprintf("%s:%d: %q: write %s", path, p.line, found, word.instead))
			}
		}
	}
	return mistakes
}

type passage struct {
	text string
	line int
}

// guide returns the lines of a guide.
func guide(source []byte) (found []passage) {
	for line := range strings.Lines(string(source)) {
		found = append(found, passage{strings.TrimRight(line, "\r\n"), len(found) + 1})
	}
	return found
}

// prose returns the comments and strings of a Go file, without struct tags.
func prose(path string, source []byte) (found []passage) {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile(path, -1, len(source)), source, nil, scanner.ScanComments)
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

var tag = regexp.MustCompile("^`\\w+:\"")

// word is a mistake, with what to write instead.
type word struct {
	pattern *regexp.Regexp
	instead string
}

var words = []word{
	{regexp.MustCompile(`(?:^|[^\w.-])[Aa]nswer(?:s|ed|ing)?\b(?:[^\w-]|$)`), "response, returns"},
	{regexp.MustCompile(`\b(?:[Nn]o|[Ss]ome|[Aa]ny)body\b`), "no one, someone, anyone; or who it is"},
	{regexp.MustCompile(`\b[Mm]end(?:s|ed|ing)?\b`), "fix"},
	{regexp.MustCompile(`\brefuses? (?:a|an|the|every|such an?) (?:request|call|delivery|write|create)`), "reject"},
	{regexp.MustCompile(`\brefused with (?:\d|\[?Err)`), "rejected with"},
	{regexp.MustCompile(`\| none: [^|]+ \|`), "not configurable"},
	{regexp.MustCompile(`\bas ever\b`), "unaffected"},
	{regexp.MustCompile(`\b[Nn]ullable (?:texts|moments)\b`), "nullable strings, timestamps"},
	{regexp.MustCompile(`\bwhere (?:it is|they are) not sent\b`), "default …, if omitted"},
	{regexp.MustCompile(`\bfound again\b`), "recovered"},
	{regexp.MustCompile(`\bwaited out\b`), "retried"},
	{regexp.MustCompile(`\b(?:tells?|told) of\b`), "reports"},
	{regexp.MustCompile(`\bfor want of\b`), "for lack of"},
}
