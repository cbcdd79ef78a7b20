package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gateway-go/gateway/contrib/mcp/intent"
)

// blocks returns the code blocks of a page in a language.
func blocks(t *testing.T, page, language string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has no block in %s", page, language)
	}
	return all
}

// configured returns the arguments of a server in a page's host configuration.
func configured(t *testing.T, page, name string) []string {
	t.Helper()
	var host struct {
		Servers map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(blocks(t, page, "json")[0]), &host); err != nil {
		t.Fatal(err)
	}
	server := host.Servers[name]
	if filepath.Base(server.Command) != "gateway-mcp" || len(server.Args) == 0 {
		t.Fatalf("%s: the server %s is %+v", page, name, server)
	}
	return server.Args
}

// TestTheReadmesConfigurationWorks starts a server with the flags of the README's host
// configuration.
func TestTheReadmesConfigurationWorks(t *testing.T) {
	t.Parallel()
	args := configured(t, "README.md", "payments")
	if args[0] != "money" {
		t.Fatalf("the arguments are %v", args)
	}
	f, err := parseMoney(t, nil, args[1:]...)
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

// A host starts the test plane with the arguments of its README, lists its tools and finds
// the ones that the README lists.
func TestTheConfigurationOfTheTestPlaneWorks(t *testing.T) {
	t.Parallel()
	const page = "testplane/README.md"
	args := configured(t, page, "gateway-test")
	var f testFlags
	if err := f.parse(args[1:], io.Discard); args[0] != "test" || err != nil || f.examCommand != "python3 shop.py" {
		t.Fatalf("the arguments %v: %+v, %v", args, f, err)
	}
	fromHost, toServer := io.Pipe()
	fromServer, toHost := io.Pipe()
	start(t, "the mock gateway is at", fromHost, toHost, args...)
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+`) \\|").FindAllStringSubmatch(string(text), -1)
	var documented, offered []string
	for _, row := range rows {
		documented = append(documented, strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")...)
	}
	for _, tool := range listed.Tools {
		offered = append(offered, tool.Name)
	}
	slices.Sort(documented)
	slices.Sort(offered)
	if !slices.Equal(documented, offered) {
		t.Errorf("the README has the tools %v, the server %v", documented, offered)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mock_status", Arguments: map[string]any{}}); err != nil {
		t.Error(err)
	}
	// The page's other flags.
	for _, m := range regexp.MustCompile("`(-[a-z-]+)[ `]").FindAllStringSubmatch(string(text), -1) {
		if err := new(testFlags).parse([]string{m[1] + "=0"}, io.Discard); err != nil && strings.Contains(err.Error(), "not defined") {
			t.Errorf("the README has the flag %s: %v", m[1], err)
		}
	}
}

func TestTheReadmesCommandsExist(t *testing.T) {
	t.Parallel()
	for _, block := range blocks(t, "README.md", "sh") {
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
