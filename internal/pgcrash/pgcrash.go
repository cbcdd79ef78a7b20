// Package pgcrash runs a PostgreSQL server of its own for tests that crash it.
package pgcrash

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Server is a PostgreSQL server with a data folder of its own.
type Server struct {
	// URL is the connection string of an empty database.
	URL string

	crash string
}

// Start starts a server, which ends with the test. settings are written as in
// postgresql.conf, such as "synchronous_commit = off". The test is skipped where
// there is no PostgreSQL, which is where DATABASE_URL is not set.
func Start(t *testing.T, settings ...string) *Server {
	t.Helper()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: run the test with integration/with-postgres")
	}
	script := script(t)
	// The server lives until cat has read its standard input.
	cmd := exec.CommandContext(t.Context(), script, "sh", "-c", `echo "$DATABASE_URL"; echo "$POSTGRES_CRASH"; exec cat`)
	cmd.Env = append(os.Environ(), "POSTGRES_SETTINGS="+strings.Join(settings, "\n"))
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Cancel = stdin.Close
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan(), "the server's address")
	url := lines.Text()
	require.True(t, lines.Scan(), "the script that crashes the server")
	return &Server{URL: url, crash: lines.Text()}
}

// script is with-postgres in the repository that has the current folder.
func script(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for {
		file := filepath.Join(folder, "integration", "with-postgres")
		if _, err := os.Stat(file); err == nil {
			return file
		}
		require.NotEqual(t, filepath.Dir(folder), folder, "integration/with-postgres is not in a folder above")
		folder = filepath.Dir(folder)
	}
}

// Crash ends the server at once and starts it again: commits whose log records
// were not flushed are gone, as after a power failure.
func (s *Server) Crash(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), s.crash).CombinedOutput()
	require.NoError(t, err, string(out))
}
