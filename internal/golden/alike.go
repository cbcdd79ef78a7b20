package golden

import (
	"reflect"
	"regexp"
	"slices"
)

// Alike checks that got, a response of the mock, has the same members and values as
// the golden response want, except values that differ in every run: ids, timestamps
// and codes derived from them. Members named in except may have any value.
func Alike(tb TB, want, got []byte, except ...string) {
	tb.Helper()
	compare(tb, want, got, func(name string, want, got any) bool {
		ignored := slices.Contains(except, name) && want != (absent{}) && got != (absent{})
		regenerated := slices.Contains(generated(), name) && reflect.TypeOf(want) == reflect.TypeOf(got)
		return ignored || regenerated || reflect.DeepEqual(normalize(want), normalize(got))
	})
}

// generated lists the members whose values are generated anew in every run.
func generated() []string {
	return []string{
		"qr_code", "qrcode", "end_to_end_id", "endToEnd", "barcode", "digitable_line", "client_secret", "next_cursor", "prev_cursor",
		"session_token", "slug", "public_token", "pixQrCode", "pixCode",
	}
}

// normalize replaces the ids and timestamps in a string.
func normalize(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	s = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(s, "<id>")
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`).ReplaceAllString(s, "<timestamp>")
}
