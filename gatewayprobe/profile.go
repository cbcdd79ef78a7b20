package gatewayprobe

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Profile says how a gateway reads rows of docs/assumptions.md, by their ids; see
// [Result.Reading]. Rows that it does not have are read as the document dialect does.
type Profile struct {
	Name     string            `json:"name"` // the gateway that was probed
	Readings map[string]string `json:"readings"`
}

// Profile returns what the gateway did in every row that could be told.
func (r *Report) Profile() Profile {
	p := Profile{Name: r.Gateway, Readings: map[string]string{}}
	for _, result := range r.Results {
		if result.Verdict != CannotTell {
			p.Readings[result.ID] = result.Reading
		}
	}
	return p
}

// ReadProfile reads a profile, or a report as its profile, from JSON.
func ReadProfile(text []byte) (Profile, error) {
	var file struct {
		Name     string            `json:"name"`
		Readings map[string]string `json:"readings"`
		Gateway  string            `json:"gateway"`
		Results  []Result          `json:"results"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return Profile{}, fmt.Errorf("gatewayprobe: neither a profile nor a report: %w", err)
	}
	switch {
	case file.Results != nil:
		return (&Report{Gateway: file.Gateway, Results: file.Results}).Profile(), nil
	case file.Readings != nil:
		return Profile{Name: file.Name, Readings: file.Readings}, nil
	}
	return Profile{}, errors.New("gatewayprobe: neither a profile, which has readings, nor a report, which has results")
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
