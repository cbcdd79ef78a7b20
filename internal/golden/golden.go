// Package golden compares the client and the mock gateway with the golden files
// under testdata/, which were written by hand from the interface document: one
// file per request and response, testdata/<resource>/<operation>.request.json
// and .response.json, and .live.response.json if the live dialect differs.
// Only tests import it.
package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// TB is the part of *testing.T that this package uses.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Read returns the file testdata/name in the module's root, such as
// "customers/create.request.json".
func Read(tb TB, name string) []byte {
	tb.Helper()
	body, err := os.ReadFile(filepath.Join(root(tb), "testdata", filepath.FromSlash(name)))
	if err != nil {
		tb.Fatalf("golden: %v", err)
	}
	return body
}

// root returns the module's folder.
func root(tb TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatalf("golden: %v", err)
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatalf("golden: no go.mod above the test's folder")
		}
		dir = parent
	}
	return dir
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Body returns the file testdata/name as it must be on the wire: with the same
// members in the same order but without whitespace.
func Body(tb TB, name string) string {
	tb.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, Read(tb, name)); err != nil {
		tb.Fatalf("golden: %s: %v", name, err)
	}
	return b.String()
}

// Data returns the data member of a response.
func Data(tb TB, response []byte) []byte {
	tb.Helper()
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(response, &envelope); err != nil || envelope.Data == nil {
		tb.Fatalf("golden: no data in %.200s: %v", response, err)
	}
	return envelope.Data
}

// Keeps checks a round trip: got, the encoding of what was decoded from want, must
// have the members and values of want and no others. Absent, null, "" and an empty
// list count as equal, and a number may have been a string in want.
func Keeps(tb TB, want, got []byte) {
	tb.Helper()
	compare(tb, want, got, func(_ string, want, got any) bool {
		if digits, ok := want.(string); ok && got == json.Number(digits) {
			return true
		}
		return empty(want) && empty(got) || want == (absent{}) && zero(got) || reflect.DeepEqual(want, got)
	})
}

func parse(tb TB, raw []byte) any {
	tb.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		tb.Fatalf("golden: %v in %.200s", err, raw)
	}
	return v
}

// absent stands for a member that only the other object has.
type absent struct{}

func (absent) String() string { return "absent" }

// compare reports the values of got that differ from those of want.
func compare(tb TB, want, got []byte, same func(name string, want, got any) bool) {
	tb.Helper()
	var walk func(path string, want, got any)
	walk = func(path string, want, got any) {
		if same(path[strings.LastIndexByte(path, '.')+1:], want, got) {
			return
		}
		wantObject, ok := want.(map[string]any)
		gotObject, both := got.(map[string]any)
		if ok && both {
			all := maps.Clone(wantObject)
			maps.Copy(all, gotObject)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				walk(path+"."+name, member(wantObject, name), member(gotObject, name))
			}
			return
		}
		wantList, ok := want.([]any)
		gotList, both := got.([]any)
		if ok && both && len(wantList) == len(gotList) {
			for i := range wantList {
				walk(fmt.Sprintf("%s[%d]", path, i), wantList[i], gotList[i])
			}
			return
		}
		tb.Errorf("golden: got%s is %v, want %v", path, got, want)
	}
	walk("", parse(tb, want), parse(tb, got))
}

func member(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	return absent{}
}

func empty(v any) bool {
	list, ok := v.([]any)
	return v == nil || v == "" || v == (absent{}) || ok && len(list) == 0
}

// zero reports whether v is a zero value, which may be encoded for a member that
// the response did not have.
func zero(v any) bool { return empty(v) || v == false || v == json.Number("0") }

// Filled checks that every exported field of the struct v points to, and of the
// structs in it, is set. After decoding a golden file, this shows that each field
// has the right name. Raw and the fields named in except may be zero, in any
// struct.
func Filled(tb TB, v any, except ...string) {
	tb.Helper()
	for _, path := range unset(reflect.ValueOf(v), "", append(except, "Raw")) {
		tb.Errorf("golden: %T%s is not set", v, path)
	}
}

// unset returns the paths of the values that are zero.
func unset(v reflect.Value, path string, except []string) []string {
	if v.IsZero() {
		return []string{path}
	}
	switch v.Kind() { //nolint:exhaustive // values of other kinds contain no fields
	case reflect.Pointer, reflect.Interface:
		return unset(v.Elem(), path, except)
	case reflect.Slice:
		if v.Len() > 0 {
			return unset(v.Index(0), path+"[0]", except)
		}
		return []string{path}
	case reflect.Struct:
		return unsetFields(v, path, except)
	}
	return nil
}

func unsetFields(v reflect.Value, path string, except []string) []string {
	if v.NumField() > 0 && v.Type().Field(0).Type.String() == "time.Time" {
		return nil // a timestamp, which is not zero
	}
	var out []string
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && !slices.Contains(except, f.Name) {
			out = append(out, unset(v.Field(i), path+"."+f.Name, except)...)
		}
	}
	return out
}

// Raw returns the field Raw of the result that v points to, and whether it has one.
func Raw(v any) ([]byte, bool) {
	f := reflect.ValueOf(v).Elem().FieldByName("Raw")
	if !f.IsValid() {
		return nil, false
	}
	return f.Bytes(), true
}

// Scramble returns the JSON object in raw with an unknown member "x_new" added to it
// and to every object in it, as a later version of the gateway may send.
func Scramble(tb TB, raw []byte) []byte {
	tb.Helper()
	out, err := json.Marshal(scramble(parse(tb, raw)))
	if err != nil {
		tb.Fatalf("golden: %v", err)
	}
	return out
}

func scramble(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = scramble(member)
		}
		v["x_new"] = jsontext.Value(`{"a":[1,null,"é"]}`)
	case []any:
		for i := range v {
			v[i] = scramble(v[i])
		}
	}
	return v
}
