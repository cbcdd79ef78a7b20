package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// childURL and childFolder name the URL of the gateway and the folder of the files, for
// TestServerProcess.
const childURL, childFolder = "GATEWAY_MCP_TEST_URL", "GATEWAY_MCP_TEST_FOLDER"

// TestServerProcess is the server that TestKilledServersPayOnce kills.
func TestServerProcess(t *testing.T) { //nolint:paralleltest // it never returns in the process that needs it
	url, folder := os.Getenv(childURL), os.Getenv(childFolder)
	if url == "" {
		t.Skip("this is the process that TestKilledServersPayOnce starts and kills")
	}
	os.Exit(run(context.Background(), []string{
		"money", "-url", url, "-key-file", filepath.Join(folder, "key"), "-journal", filepath.Join(folder, "journal"),
		"-allow", "payout", "-limit", "payout=1000000/day", "-approve", "client",
	}, os.Stdin, os.Stdout, os.Stderr))
}

// TestKilledServersPayOnce kills the server while it pays, and pays again with the next.
func TestKilledServersPayOnce(t *testing.T) {
	t.Parallel()
	rounds := 8
	if os.Getenv("FULL_SIZE") != "" {
		rounds = 60
	}
	mock := mockserver.Run(t, mockserver.WithOpeningBalance(1e9))
	url, err := mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "key"), []byte(mock.Key()), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func() (*mcp.ClientSession, *exec.Cmd) {
		child := exec.Command(os.Args[0], "-test.run=^TestServerProcess$")
		child.Env = append(os.Environ(), childURL+"="+url, childFolder+"="+folder)
		session, err := mcp.NewClient(&mcp.Implementation{Name: "host"}, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			},
		}).Connect(t.Context(), &mcp.CommandTransport{Command: child}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return session, child
	}
	transfers := func() []gateway.Transfer {
		made, err := gateway.Collect(mock.Client().Transfers.All(t.Context(), gateway.TransferListParams{Limit: 100}), 0)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	killed, paid := 0, 0
	for n := range rounds {
		pay := func(session *mcp.ClientSession) (state string, err error) {
			arguments := map[string]any{"for": fmt.Sprint("invoice ", n), "pix_key_type": "EMAIL", "pix_key": "ana@example.com", "amount": 100 + n}
			var intent any
			for _, tool := range []string{"prepare_payout", "commit_intent"} {
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
				if err != nil {
					return "", err
				}
				structured, _ := r.StructuredContent.(map[string]any)
				intent, state = structured["intent"], fmt.Sprint(structured["state"])
				arguments = map[string]any{"intent": intent}
			}
			return state, nil
		}
		session, child := begin()
		kill := time.AfterFunc(rand.N(80*time.Millisecond), func() { _ = child.Process.Kill() })
		if _, err := pay(session); err != nil {
			killed++
			paid += len(transfers()) - n
		}
		kill.Stop()
		_ = child.Process.Kill()
		_ = session.Close()

		session, _ = begin()
		if state, err := pay(session); err != nil || state != "done" {
			t.Errorf("payment %d with the next server: %s, %v", n, state, err)
		}
		_ = session.Close()
	}
	made := transfers()
	t.Logf("%d servers of %d were killed during a call, %d of them after the gateway had paid", killed, rounds, paid)
	amounts := map[int64]bool{}
	for _, transfer := range made {
		amounts[transfer.Amount] = true
	}
	if len(made) != rounds || len(amounts) != rounds {
		t.Errorf("%d transfers with %d amounts were made, want %d", len(made), len(amounts), rounds)
	}
}
