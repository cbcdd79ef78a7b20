package golden

import (
	"reflect"
	"regexp"
	"slices"
)

// Alike checks that got, a response of the mock, has the members and values of
// the golden response want, except those that differ in every run: ids,
// timestamps and codes derived from them. Members named in but may have any
// value.
func Alike(tb TB, want, got []byte, but ...string) {
	tb.Helper()
	compare(tb, want, got, func(name string, want, got any) bool {
		free := slices.Contains(but, name) && want != (absent{}) && got != (absent{})
		again := slices.Contains(made(), name) && reflect.TypeOf(want) == reflect.TypeOf(got)
		return free || again || reflect.DeepEqual(blur(want), blur(got))
	})
}

// made are the members whose values are generated in every run.
func made() []string {
	return []string{
		"qr_code", "qrcode", "end_to_end_id", "endToEnd", "barcode", "digitable_line", "client_secret", "next_cursor", "prev_cursor",
		"session_token", "slug", "public_token", "pixQrCode", "pixCode",
	}
}

// blur replaces ids and timestamps within a string.
func blur(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	s = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(s, "<id>")
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`).ReplaceAllString(s, "<moment>")
}
