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

// module is the path of this module.
const module = "github.com/gateway-go/gateway"

// Module returns the version of this module in the binary, which may be that of a program
// that uses the module.
func Module() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return moduleIn(info)
}

const unknown = "(unknown)"

func moduleIn(info *debug.BuildInfo) string {
	if info.Main.Path == module {
		return cmp.Or(info.Main.Version, "(devel)")
	}
	for _, d := range info.Deps {
		if d.Path != module {
			continue
		}
		if d.Replace != nil {
			d = d.Replace
		}
		return cmp.Or(d.Version, "(devel)")
	}
	return unknown
}
