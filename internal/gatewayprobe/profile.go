package gatewayprobe

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/profile"
)

// Profile records how a gateway behaves in the rows of docs/assumptions.md: the
// [Result.Reading] of each, by the row's id. A missing row counts as in the
// document dialect.
type Profile struct {
	Name     string            `json:"name"` // the gateway that was probed
	Readings map[string]string `json:"readings"`
}

// Profile returns the gateway's readings of all rows that could be tested.
func (r *Report) Profile() Profile {
	p := Profile{Name: r.Gateway, Readings: map[string]string{}}
	for _, result := range r.Results {
		if result.Verdict != CannotTell {
			p.Readings[result.ID] = result.Reading
		}
	}
	return p
}

// ReadProfile reads a profile, or the profile of a report, from JSON.
func ReadProfile(text []byte) (Profile, error) {
	var file struct {
		Name     string            `json:"name"`
		Readings map[string]string `json:"readings"`
		Gateway  string            `json:"gateway"`
		Results  []Result          `json:"results"`
	}
	if err := json.Unmarshal(jsonread.WithoutMark(text), &file); err != nil {
		return Profile{}, fmt.Errorf("neither a profile nor a report: %w", err)
	}
	p := Profile{Name: file.Name, Readings: file.Readings}
	switch {
	case file.Results != nil:
		p = (&Report{Gateway: file.Gateway, Results: file.Results}).Profile()
	case file.Readings == nil:
		return p, errors.New("neither a profile, which has readings, nor a report, which has results")
	}
	_, _, err := profile.Read(p.Readings)
	return p, err
}

// reading returns the profile's reading of a row.
func (p Profile) reading(id string, dialect bool) string {
	if reading, found := p.Readings[id]; found {
		return reading
	}
	if dialect {
		return document
	}
	return assumed
}

// DocumentProfile returns the profile of the document dialect.
func DocumentProfile() Profile {
	return Profile{Name: document, Readings: profile.Dialect(false)}
}

// LiveProfile returns the profile of the live dialect.
func LiveProfile() Profile { return Profile{Name: live, Readings: profile.Dialect(true)} }

// NotReproduced lists the rows for whose reading the mock gateway has no setting.
// mockserver.WithProfile ignores them.
func (p Profile) NotReproduced() []string {
	_, without, _ := profile.Read(p.Readings) // the user of the profile checks for unknown rows
	return without
}
