package main

import (
	"bytes"
	"math"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The process stays near its memory limit when it is filled with large
// resources, long rejected requests, or webhooks that no receiver accepts.
func TestTheProcessKeepsItsMemoryLimit(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil || raceDetector {
		t.Skip("the memory of a process is read from /proc, and differs with the race detector")
	}
	failing := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 512))
	})
	size, rejections := 20_000, 300 // resources of 20 kB; rejections that overflow the journal's 2 MiB several times
	if os.Getenv("FULL_SIZE") != "" {
		size, rejections = 4_000, 1_200
	}
	large := strings.Replace(pix(""), `"external_ref":""`, `"metadata":"`+strings.Repeat("m", size)+`"`, 1)
	for name, fill := range map[string]struct {
		args []string
		body string
		want int
	}{
		"resources":         {body: large, want: http.StatusInsufficientStorage},
		"rejected requests": {body: `{"x":"` + strings.Repeat("x", 60<<10) + `"}`, want: http.StatusBadRequest},
		"webhooks":          {args: []string{"-webhook", failing}, body: large, want: http.StatusInsufficientStorage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, append(fill.args, "-memory", "16", "-log", "off", "-clock", "manual")...)
			last := 0
			for n := 0; n < 20_000 && last != http.StatusInsufficientStorage; n++ {
				if last == http.StatusBadRequest && n > rejections {
					break
				}
				var err error
				last, _, err = g.call(http.MethodPost, "/v2/transactions", fill.body)
				require.NoError(t, err)
			}
			assert.Equal(t, fill.want, last)
			assert.Less(t, g.resident(), 16+48, "MiB")
		})
	}
}

//nolint:paralleltest // the limit is the process's
func TestGarbageIsCollectedWithinTwiceTheMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	restore := collectGarbage(100 << 20)
	assert.Equal(t, int64(216<<20), debug.SetMemoryLimit(-1))
	collectGarbage(math.MaxInt64)()
	assert.Equal(t, int64(216<<20), debug.SetMemoryLimit(-1), "a lower limit remains")
	restore()
	assert.Equal(t, before, debug.SetMemoryLimit(-1))
}

// resident returns the memory of the process, in MiB.
func (g *process) resident() int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(g.cmd.Process.Pid) + "/status")
	require.NoError(g.t, err)
	kib, err := strconv.Atoi(regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(string(text))[1])
	require.NoError(g.t, err)
	g.t.Logf("resident: %d MiB", kib>>10)
	return kib >> 10
}
