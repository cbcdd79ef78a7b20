package engine_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// invalid returns the violation of a rule about the value of a field.
func invalid(field string) []spec.Violation {
	return []spec.Violation{{Field: field, Code: spec.CodeInvalid}}
}

// eachField returns, for each field of a Change, one with only that field set.
func eachField(t *testing.T) map[string]engine.Change {
	t.Helper()
	changes := map[string]engine.Change{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[engine.Change]()) {
		var c engine.Change
		v := reflect.ValueOf(&c).Elem().FieldByIndex(f.Index)
		switch v.Kind() {
		case reflect.Slice:
			v.Set(reflect.MakeSlice(f.Type, 1, 1))
		case reflect.Pointer:
			v.Set(reflect.New(f.Type.Elem()))
		case reflect.Int64:
			v.SetInt(1)
		default:
			require.Fail(t, "a field of an unknown type", f.Name)
		}
		changes[f.Name] = c
	}
	return changes
}

func TestChangeAndMergesEveryField(t *testing.T) {
	t.Parallel()
	for name, c := range eachField(t) {
		assert.Equal(t, c, c.And(engine.Change{}), name)
		assert.Equal(t, c, engine.Change{}.And(c), name)
	}
}

// A Change that only sets timers counts as empty.
func TestChangeEmpty(t *testing.T) {
	t.Parallel()
	assert.True(t, engine.Change{}.Empty())
	for name, c := range eachField(t) {
		assert.Equal(t, name == "Timers", c.Empty(), name)
		for other, and := range eachField(t) {
			if name != "Balance" { // two balances may cancel each other out
				assert.Equal(t, name == "Timers" && other == "Timers", c.And(and).Empty(), "%s and %s", name, other)
			}
		}
	}
}
