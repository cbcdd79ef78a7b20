package main

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gateway-go/gateway/contrib/mcp/intent"
)

// blocks returns the code blocks of the README in a language.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("the README has no block in %s", language)
	}
	return all
}

// TestTheReadmesConfigurationWorks starts a server with the flags of the README's host
// configuration.
func TestTheReadmesConfigurationWorks(t *testing.T) {
	t.Parallel()
	var host struct {
		Servers map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(blocks(t, "json")[0]), &host); err != nil {
		t.Fatal(err)
	}
	server := host.Servers["payments"]
	if server.Command != "gateway-mcp" || server.Args[0] != "money" {
		t.Fatalf("the server is %+v", server)
	}
	f, err := parseMoney(t, nil, server.Args[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.allow) != 2 || f.limits[intent.LimitOf{Kind: intent.Payout, Currency: "BRL"}] != (intent.Limit{Day: 50000, Each: 10000}) {
		t.Errorf("allowed are %v with the limits %v", f.allow, f.limits)
	}
	f.keyFile, f.journal, f.audit = t.TempDir()+"/key", t.TempDir()+"/journal", t.TempDir()+"/audit"
	if err := os.WriteFile(f.keyFile, []byte("sk_live_1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.serve(t.Context(), strings.NewReader(""), io.Discard, io.Discard); err != nil {
		t.Errorf("the server does not start: %v", err)
	}
}

func TestTheReadmesCommandsExist(t *testing.T) {
	t.Parallel()
	for _, block := range blocks(t, "sh") {
		words := strings.Fields(block)
		switch words[0] {
		case "go":
			if _, err := os.Stat("../../" + words[len(words)-1]); err != nil {
				t.Error(err)
			}
		case "gateway-mcp":
			err := approve(words[2:], nil) // which finds no journal
			if words[1] != "approve" || err == nil || !strings.Contains(err.Error(), "-journal: stat") {
				t.Errorf("%s: %v", block, err)
			}
		default:
			t.Errorf("the command %q has no test", block)
		}
	}
}
