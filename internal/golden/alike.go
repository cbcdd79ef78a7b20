package golden

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Alike checks that the mock's response got has the members and values of the
// golden response want, up to what no two runs have in common: ids, moments, and
// the codes that are made of them. Members named in but may have any value.
func Alike(tb TB, want, got []byte, but ...string) {
	tb.Helper()
	for _, difference := range unlike("", parse(tb, want), parse(tb, got), but) {
		tb.Errorf("golden: the response's %s", difference)
	}
}

// made are the members whose texts are made anew in every run.
func made() []string {
	return []string{
		"qr_code", "qrcode", "end_to_end_id", "endToEnd", "barcode", "digitable_line", "client_secret", "next_cursor", "prev_cursor",
		"session_token", "slug", "public_token", "pixQrCode", "pixCode",
	}
}

func unlike(path string, want, got any, but []string) []string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	if slices.Contains(but, name) {
		return nil
	}
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return unlikeMembers(path, want, got, but)
		}
	case []any:
		if got, ok := got.([]any); ok && len(want) == len(got) {
			var out []string
			for i := range want {
				out = append(out, unlike(fmt.Sprintf("%s[%d]", path, i), want[i], got[i], but)...)
			}
			return out
		}
	default:
		again := slices.Contains(made(), name) && reflect.TypeOf(want) == reflect.TypeOf(got)
		if again || blur(want) == blur(got) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %v, the golden file has %v", path, got, want)}
}

func unlikeMembers(path string, want, got map[string]any, but []string) []string {
	var out []string
	for name, w := range want {
		if g, ok := got[name]; ok {
			out = append(out, unlike(strings.TrimPrefix(path+"."+name, "."), w, g, but)...)
		} else {
			out = append(out, fmt.Sprintf("%s.%s is missing", path, name))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			out = append(out, fmt.Sprintf("%s.%s is not in the golden file", path, name))
		}
	}
	slices.Sort(out)
	return out
}

// blur replaces ids and moments within a text.
func blur(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	s = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(s, "<id>")
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`).ReplaceAllString(s, "<moment>")
}
