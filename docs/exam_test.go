package docs_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/exam"
)

// The tables in exam.md have the scenarios, in the order of the exam, and all their claims.
func TestScenarioTable(t *testing.T) {
	t.Parallel()
	scenarios, err := exam.Scenarios(nil, nil)
	require.NoError(t, err)
	var want, have, claims []string
	for _, s := range scenarios {
		want = append(want, s.Name)
		for _, c := range s.Claims {
			if !slices.Contains(claims, string(c)) {
				claims = append(claims, string(c))
			}
		}
	}
	for _, row := range tableRows(t, "exam.md", "| about | scenarios |") {
		have = append(have, names(row[1])...)
	}
	assert.Equal(t, want, have)

	var explained []string
	for _, row := range tableRows(t, "exam.md", "| claim | |") {
		explained = append(explained, row[0])
	}
	assert.ElementsMatch(t, claims, explained)
}

// Every scenario that the guide and the example's table of mistakes name exists.
func TestScenariosOfTheExamGuideExist(t *testing.T) {
	t.Parallel()
	for _, row := range tableRows(t, "../examples/exam/README.md", "| mistake | what the shop does | found by |") {
		found := names(row[2])
		require.NotEmpty(t, found, row[0])
		_, err := exam.Scenarios(found, nil)
		require.NoError(t, err, row[0])
	}
	text, err := os.ReadFile("exam.md")
	require.NoError(t, err)
	lists := regexp.MustCompile("-(?:skip|only) ([a-z,-]+)").FindAllSubmatch(text, -1)
	require.NotEmpty(t, lists)
	for _, list := range lists {
		_, err := exam.Scenarios(strings.Split(string(list[1]), ","), nil)
		assert.NoError(t, err)
	}
}

// The table of the report has each member that the exam reads.
func TestReportTable(t *testing.T) {
	t.Parallel()
	members := []string{"id"}
	for field := range reflect.TypeFor[exam.Report]().Fields() {
		if name := field.Tag.Get("json"); name != "-" {
			members = append(members, name)
		}
	}
	var listed []string
	for _, row := range tableRows(t, "exam.md", "| member | value |") {
		listed = append(listed, names(row[0])[0])
	}
	assert.Equal(t, members, listed)
}
