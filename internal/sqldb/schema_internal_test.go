package sqldb

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheFirstSchemasOfASearchPath(t *testing.T) {
	t.Parallel()
	one := func(name string) []candidate { return []candidate{{name, false}} }
	for path, want := range map[string][]candidate{
		`"$user", public`:      {{"ana", true}, {"public", false}},
		`$user,public`:         {{"ana", true}, {"public", false}},
		`"$user"`:              {{"ana", true}},
		`"$user", ana, public`: {{"ana", true}, {"ana", false}},
		`ana, public`:          one("ana"),
		`tenant,shared`:        one("tenant"),
		"\n tenant\t, shared":  one("tenant"),
		`Tenant`:               one("tenant"),
		`ÄRGER, public`:        one("Ärger"), // only the letters of ASCII are folded
		`"Tenant", public`:     one("Tenant"),
		`"a, b" , c`:           one("a, b"),
		`"a ""b"" c", d`:       one(`a "b" c`),
		`""""`:                 one(`"`),
		`"O'Brien"`:            one("O'Brien"),
		`"", public`:           one("public"),
		`""`:                   nil,
		``:                     nil,
		` , `:                  nil,
		`"open`:                one("open"),
	} {
		assert.Equal(t, want, searched(path, "ana"), "%q", path)
	}
}

func TestAQuotedName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		`a", b`: {"a", ", b"}, `"""`: {`"`, ""}, `a""b"c"`: {`a"b`, `c"`}, ``: {"", ""}, `a`: {"a", ""},
	} {
		name, rest := unquoted(text)
		assert.Equal(t, want, [2]string{name, rest}, text)
	}
}

func TestALiteral(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `'O''Brien'`, literal("O'Brien"))
}
