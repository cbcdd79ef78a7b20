package jsonread_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// FuzzMembers holds the members of an object to those that the JSON package reads.
func FuzzMembers(f *testing.F) {
	for _, body := range []string{
		string(golden.Read(f, "transactions/create.request.json")), `{}`, `{"a":1,"a":2}`, `{ "a" : [ 1 , {"b":"}\"]"} ] , "\u0062" : null }`,
		"{\"a\xff\":\"\xfe\"}", `{"a":"\ud83d\ude00\ud800"}`, `[]`, `{"a":{"b":{"c":[]}}}`, `{"a":"\\"}`, `7`, "{\"a\":1.5e3\t,\"b\":tru",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var members []string
		for name, value := range jsonread.Members(string(body)) {
			members = append(members, name, value)
		}
		value := jsontext.Value(body)
		if !value.IsValid(jsonread.Lenient) {
			return // it must only not panic
		}
		require.True(t, jsonread.Valid(body))
		assert.Equal(t, slowMembers(t, body), members, "%q", body)
	})
}

func slowMembers(t *testing.T, body []byte) (members []string) {
	t.Helper()
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsonread.Lenient)
	if dec.PeekKind() != '{' {
		return nil
	}
	_, err := dec.ReadToken()
	require.NoError(t, err)
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		require.NoError(t, err)
		member := name.String()
		value, err := dec.ReadValue()
		require.NoError(t, err)
		members = append(members, member, string(value))
	}
	return members
}
