// Package version describes what a command was built from.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Of returns the line that a command prints for -version, from the build information
// in the binary.
func Of(command string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return command + " (unknown version)"
	}
	text := command + " " + cmp.Or(info.Main.Version, "(devel)")
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(text, s.Value[:min(len(s.Value), 12)]) {
			text += " " + s.Value
		}
	}
	return text + " " + info.GoVersion + " " + runtime.GOOS + "/" + runtime.GOARCH
}
