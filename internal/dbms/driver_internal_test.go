package dbms

import (
	"bytes"
	"log/slog"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAnOldSQLiteDriverIsReported(t *testing.T) {
	t.Parallel()
	replaced := func(path, version string) *debug.Module {
		return &debug.Module{Path: sqliteModule, Version: "v1.38.0", Replace: &debug.Module{Path: path, Version: version}}
	}
	for name, test := range map[string]struct {
		module *debug.Module
		old    string // "": no warning
	}{
		"the last one that keeps locks": {&debug.Module{Path: sqliteModule, Version: "v1.40.1"}, "v1.40.1"},
		"a shorter number":              {&debug.Module{Path: sqliteModule, Version: "v1.9.0"}, "v1.9.0"},
		"a pre-release":                 {&debug.Module{Path: sqliteModule, Version: "v1.41.0-rc.1"}, "v1.41.0-rc.1"},
		"a commit before the release":   {&debug.Module{Path: sqliteModule, Version: "v1.41.0-0.20251101000000-0123456789ab"}, "v1.41.0-0.20251101000000-0123456789ab"},
		"the release":                   {&debug.Module{Path: sqliteModule, Version: "v1.41.0"}, ""},
		"a later one":                   {&debug.Module{Path: sqliteModule, Version: "v1.62.0"}, ""},
		"a commit after the release":    {&debug.Module{Path: sqliteModule, Version: "v1.41.1-0.20251201000000-0123456789ab"}, ""},
		"a major version":               {&debug.Module{Path: sqliteModule, Version: "v2.0.0"}, ""},
		"another driver":                {&debug.Module{Path: "github.com/mattn/go-sqlite3", Version: "v1.14.0"}, ""},
		"replaced by a later one":       {replaced(sqliteModule, "v1.41.0"), ""},
		"replaced by an older one":      {replaced(sqliteModule, "v1.29.5"), "v1.29.5"},
		"replaced by a fork":            {replaced("example.com/fork/sqlite", "v0.1.0"), ""},
		"replaced by a directory":       {replaced("../sqlite", ""), ""},
		"not a version":                 {&debug.Module{Path: sqliteModule, Version: "(devel)"}, ""},
	} {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		WarnOfDriver(t.Context(), logger, &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/other", Version: "v0.0.1"}, test.module}})
		if test.old == "" {
			assert.Empty(t, log.String(), name)
			continue
		}
		assert.Contains(t, log.String(), "level=WARN", name)
		assert.Contains(t, log.String(), "version="+test.old+" ", name)
		assert.Contains(t, log.String(), "fixed_in=v1.41.0", name)
	}
	WarnOfDriver(t.Context(), slog.New(slog.DiscardHandler), nil)
}
