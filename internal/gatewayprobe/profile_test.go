package gatewayprobe_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/mockserver"
)

// saved returns the profile that is read back from a report encoded as JSON.
func saved(t *testing.T, report *gatewayprobe.Report) gatewayprobe.Profile {
	t.Helper()
	text, err := json.Marshal(report)
	require.NoError(t, err)
	p, err := gatewayprobe.ReadProfile(text)
	require.NoError(t, err)
	return p
}

// as makes the mock behave like the gateway with the profile.
func as(p gatewayprobe.Profile) mockserver.Option {
	text, err := json.Marshal(p)
	if err != nil { // strings always encode
		text = nil
	}
	return mockserver.WithProfile(text)
}

// With the report of a run as its profile, the mock behaves as the probed
// gateway.
func TestAMockWithTheProfileOfARunBehavesAsTheProbedGateway(t *testing.T) {
	t.Parallel()
	for i, gw := range []struct {
		name    string
		options []mockserver.Option
	}{
		{"the live dialect", []mockserver.Option{mockserver.WithDialect(mockserver.Live)}},
		{"a gateway between both", []mockserver.Option{as(mixture()), mockserver.WithLenient(), mockserver.WithFee(350)}},
		{"a gateway that reports what it settles", []mockserver.Option{mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(19.27)}},
	} {
		if testing.Short() && !explore.Sampled(i) {
			continue
		}
		t.Run(gw.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				profile := saved(t, probe(t, gatewayprobe.Config{}, gw.options...))
				assert.Empty(t, profile.NotReproduced())
				again := probe(t, gatewayprobe.Config{Profile: profile}, as(profile))
				assert.Empty(t, differing(again))
				assert.Equal(t, profile.Readings, saved(t, again).Readings)
			})
		})
	}
}

// mixture is a profile in which every other row is read as in the live dialect.
func mixture() gatewayprobe.Profile {
	p := gatewayprobe.Profile{Name: "mixture", Readings: map[string]string{}}
	for i, id := range slices.Sorted(maps.Keys(gatewayprobe.LiveProfile().Readings)) {
		p.Readings[id] = []string{"live", "document"}[i%2]
	}
	p.Readings["listed-fee"] = p.Readings["listed-transaction"]
	return p
}

// Each row of the dialects is a separate setting: with only this row live in
// the profile, the mock differs from the document dialect in only this row.
func TestEachRowOfTheDialectsCanBeSetOnItsOwn(t *testing.T) {
	t.Parallel()
	for i, id := range slices.Sorted(maps.Keys(gatewayprobe.LiveProfile().Readings)) {
		if testing.Short() && !explore.Sampled(i) {
			continue
		}
		if id == "listed-fee" { // is about a member that only exists with listed-transaction
			continue
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				profile := gatewayprobe.Profile{Readings: map[string]string{id: "live"}}
				report := probe(t, gatewayprobe.Config{Only: rowsOfTheDialects()}, as(profile))
				want := []string{id + ": live (expected: document)"}
				if id == "listed-transaction" {
					want = append(want, "listed-fee: live (expected: document)")
				}
				assert.Equal(t, want, differing(report))
			})
		})
	}
}

func rowsOfTheDialects() []string {
	var ids []string
	for _, a := range docs.Assumptions() {
		if strings.Contains(a.Knob, "WithDialect") {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

func TestTheTwoDialectsAreProfiles(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t, rowsOfTheDialects(), slices.Collect(maps.Keys(gatewayprobe.LiveProfile().Readings)))
	for name, row := range map[string]struct {
		profile gatewayprobe.Profile
		dialect mockserver.Dialect
	}{
		"document": {gatewayprobe.DocumentProfile(), mockserver.Document},
		"live":     {gatewayprobe.LiveProfile(), mockserver.Live},
	} {
		assert.Equal(t, name, row.profile.Name)
		assert.Equal(t, name, row.dialect.String())
		from := mockserver.Run(t, as(row.profile))
		to := mockserver.Run(t, mockserver.WithDialect(row.dialect))
		snapshot, err := from.Snapshot()
		require.NoError(t, err)
		require.NoError(t, to.Restore(snapshot), "the profile equals the dialect")
		synctest.Test(t, func(t *testing.T) {
			report := probe(t, gatewayprobe.Config{Profile: row.profile, Only: rowsOfTheDialects()}, mockserver.WithDialect(row.dialect))
			assert.Empty(t, differing(report))
		})
	}
}

func TestReadingsWithoutASettingAreListed(t *testing.T) {
	t.Parallel()
	profile := gatewayprobe.Profile{Readings: map[string]string{
		"list-envelope": "live", "validation-status": "418", "listed-transaction": "document", "listed-fee": "live", "list-order": "the older transaction is listed first",
		"transaction-fee": "a payment of 10000 cents costs -1", "amount-minimum": "assumed",
	}}
	assert.Equal(t, []string{"validation-status", "listed-fee", "list-order", "transaction-fee"}, profile.NotReproduced())

	synctest.Test(t, func(t *testing.T) {
		m := mutants()["list-order"]
		report := probeWith(t, gatewayprobe.Config{Only: []string{"list-order", "validation-status"}}, m.change(), nil)
		assert.True(t, report.Results[1].NotReproduced, report.Results[1].Summary())
		assert.False(t, report.Results[0].NotReproduced, report.Results[0].Summary())
	})
}

func TestAFileThatIsNotAProfileIsRejected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                                  "neither a profile, which has readings, nor a report, which has results",
		`[`:                                   "neither a profile nor a report",
		`{"readings":{"no-such-row":"live"}}`: `no row "no-such-row"`,
		`{"readings":{"list-envelope":1}}`:    "neither a profile nor a report",
		`{"results":[{"id":"no-such-row","verdict":"agrees","reading":"assumed"}]}`: `no row "no-such-row"`,
	} {
		_, err := gatewayprobe.ReadProfile([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	_, err := gatewayprobe.ReadProfile([]byte("\uFEFF" + `{"readings":{"list-envelope":"live"}}`))
	require.NoError(t, err, "a byte order mark is skipped")
	_, err = mockserver.New(as(gatewayprobe.Profile{Readings: map[string]string{"no-such-row": "live"}}))
	require.EqualError(t, err, `mockserver: WithProfile: docs/assumptions.md has no row "no-such-row"`)
}
