package golden

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Missing is the value with which [Edit] removes a member.
const Missing = ""

// Edit returns the JSON in body with the member at path, such as
// "products[0].name", set to the JSON in value. All steps of the path but the last
// must exist.
func Edit(tb TB, body, path, value string) string {
	tb.Helper()
	root := parse(tb, []byte(body))
	var v any
	if value != Missing {
		v = parse(tb, []byte(value))
	}
	steps := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) })
	if !set(root, steps, v, value == Missing) {
		tb.Fatalf("golden: no %s in %.200s", path, body)
	}
	out, err := json.Marshal(root)
	if err != nil {
		tb.Fatalf("golden: %v", err)
	}
	return string(out)
}

// set sets or removes the value at a path, and reports whether the path exists.
func set(in any, steps []string, v any, remove bool) bool {
	last := len(steps) == 1
	switch node := in.(type) {
	case map[string]any:
		switch {
		case !last:
			return set(node[steps[0]], steps[1:], v, remove)
		case remove:
			delete(node, steps[0])
		default:
			node[steps[0]] = v
		}
		return true
	case []any:
		i, err := strconv.Atoi(steps[0])
		if err != nil || i >= len(node) {
			return false
		}
		if !last {
			return set(node[i], steps[1:], v, remove)
		}
		node[i] = v
		return true
	default:
		return false
	}
}
