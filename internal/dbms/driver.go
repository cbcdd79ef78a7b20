package dbms

import (
	"context"
	"go/version"
	"log/slog"
	"runtime/debug"
	"strings"
)

const (
	sqliteModule = "modernc.org/sqlite"
	sqliteFixed  = "v1.41.0" // whose connections keep no lock after an interrupted query
)

// WarnOfDriver logs a warning if the program was built with a version of a SQLite
// driver that may keep the write lock. info is nil if nothing is known.
func WarnOfDriver(ctx context.Context, logger *slog.Logger, info *debug.BuildInfo) {
	used := versionOf(info, sqliteModule)
	if used == "" || !before(used, sqliteFixed) {
		return
	}
	logger.LogAttrs(ctx, slog.LevelWarn, "gateway: this version of the SQLite driver may return a connection to the pool that has the write lock, "+
		"if a context ends during a query; then no one can write until the process ends. Upgrade it",
		slog.String("module", sqliteModule), slog.String("version", used), slog.String("fixed_in", sqliteFixed))
}

// versionOf returns the version of a module in a program, or "" if it is not known: a
// fork has versions of its own, and a directory has none.
func versionOf(info *debug.BuildInfo, module string) string {
	if info == nil {
		return ""
	}
	for _, m := range info.Deps {
		switch {
		case m.Path != module:
		case m.Replace == nil:
			return m.Version
		case m.Replace.Path == module:
			return m.Replace.Version
		}
	}
	return ""
}

// before reports whether the version a of a module is older than the release b. A
// pre-release or pseudo-version is older than its release.
func before(a, b string) bool {
	release, _, pre := strings.Cut(a, "-")
	order := version.Compare("go"+strings.TrimPrefix(release, "v"), "go"+strings.TrimPrefix(b, "v"))
	return order < 0 && version.IsValid("go"+strings.TrimPrefix(release, "v")) || order == 0 && pre
}
