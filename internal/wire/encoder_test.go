package wire_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/wire"
)

// ownForm has fields with methods and options that decide how they are encoded.
type ownForm struct {
	Any      any            `json:"any"`
	Secret   gateway.Secret `json:"secret"`
	Money    dollars        `json:"money"`
	Pointer  *dollars       `json:"pointer"`
	Absent   *dollars       `json:"absent"`
	Bytes    []byte         `json:"bytes"`
	Nothing  []struct{}     `json:"nothing"`
	Omitted  []string       `json:"omitted,omitzero"`
	Ignored  string         `json:"-"`
	Embedded Embedded       `json:"embedded"`
}

// optioned has options that only the JSON package knows.
type optioned struct {
	Empty []string `json:"empty,omitempty"`
	Big   int64    `json:"big,string"`
}

// dollars appends its own JSON.
type dollars struct{ n int }

func (d *dollars) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(d.AppendJSON(enc.AvailableBuffer()))
}

func (d *dollars) AppendJSON(b []byte) []byte { return append(append(b, `"$`...), byte('0'+d.n), '"') }

func TestTheEncoderMatchesTheJSONPackage(t *testing.T) {
	t.Parallel()
	e := wire.Encoder{Options: json.Deterministic(true)}
	own := ownForm{
		Secret: gateway.NewSecret("s"), Money: dollars{1}, Pointer: &dollars{2}, Bytes: []byte("bytes"), Ignored: "x",
		Embedded: Embedded{Name: "é\"\n\u2028", Flag: true},
	}
	boxed := own
	boxed.Any = own
	for _, v := range []any{
		nil, "text", 7, 1.5, true, []string(nil),
		map[string]any{"b": 1, "a": own},
		(*Embedded)(nil),
		[]any{1, nil, &own, []Embedded{{}}},
		own, &own, &boxed,
		dollars{3},
		&dollars{4},
		[]dollars{{5}},
		optioned{},
		&optioned{Empty: []string{}, Big: 1},
		struct{ Name string }{"n"},
		fieldsOfAllSizes{},
		&fieldsOfAllSizes{Pointer: &Embedded{}, Pointers: []*Embedded{nil, {}}, Map: map[string]int64{"b": 1, "a": 2}},
	} {
		want, err := json.Marshal(v, e.Options)
		require.NoError(t, err)
		for range 2 { // the second time with a known shape
			got, err := e.Append([]byte("before"), v)
			require.NoError(t, err)
			assert.Equal(t, "before"+string(want), string(got), "%#v", v)
		}
	}
}
