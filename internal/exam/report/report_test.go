package report_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/exam/report"
)

const strange = "<script>alert(1)</script> & \"quoted\" 'José' \x1b[31mred\x1b[0m \x00\x07 ]]> \u202e --> {{.}}"

// fixed is a result with every kind of outcome.
func fixed() report.Report {
	get := exam.Message{Direction: exam.ToGateway, What: "transactions.get 01a2b3c4…", Answer: "200"}
	return report.Report{
		Flags: []string{"-env", "NAME=it's <b>"},
		Result: &exam.Result{
			Version: "v1.2.3", Command: []string{"python3", "my shop.py", "--x=$HOME"}, Commit: "0123abcd+changes", Dialect: "document", Seed: 7,
			Started: time.Date(2027, 1, 4, 12, 0, 0, 0, time.UTC), Took: 34_849 * time.Millisecond, Starts: 12,
			Warnings: []string{"of the exam"}, Output: "first\r\n\tsecond " + strange + "\n\n", ProgramIs: "exited with 0",
			Outcomes: []exam.Outcome{
				{
					Scenario: "plain", About: "Pix, paid", Claims: []exam.Claim{exam.ChargedOnce, exam.NothingLost}, Status: exam.Passed, Right: "at once", Took: 412 * time.Millisecond,
					Exchange: []exam.Message{get}, Warnings: []string{"Retry-After of a transactions.create was ignored"},
				},
				{Scenario: "outage", About: "503", Claims: []exam.Claim{exam.NothingLost}, Status: exam.Passed, Right: "after 10 min", Took: 1500 * time.Millisecond},
				{
					Scenario: "late-paid-after-refund", About: "paid is held back", Claims: []exam.Claim{exam.ShippedOnce, exam.BooksAgree},
					Status: exam.Failed, Took: 800 * time.Millisecond,
					Failures: []exam.Finding{
						{Claim: exam.ForgedIgnored, Text: "a third thing"},
						{Claim: exam.BooksAgree, Text: "the shop reports " + strange},
						{Claim: exam.ShippedOnce, Text: "shipped after a full refund"},
						{Claim: exam.BooksAgree, Text: "and again"},
					},
					Orders: []exam.OrderBooks{{ID: "x655", Amount: 201566, Shop: "paid, paid 2015.66, shipped 1 " + strange, Gateway: "refunded"}},
					Exchange: []exam.Message{
						{Direction: exam.ToGateway, What: "transactions.create", Answer: "201"},
						{Direction: exam.Hooked, What: "POST orders", Answer: "201"},
						get, // of an order of the scenario before
						{Direction: exam.ToGateway, What: "transactions.get 01a2ffff…", Answer: "200"},
						{Direction: exam.Event, What: "the buyer pays 2015.66"},
						{At: time.Second, Direction: exam.ToGateway, What: "transactions.get 01a2ffff…", Answer: "200"},
						{Direction: exam.ToGateway, What: "transactions.get 01a2ffff…", Fault: "stale", Answer: "200"},
						{Direction: exam.ToGateway, What: "transactions.get 01a2ffff…", Answer: "503"},
						{Direction: exam.Hooked, What: "POST orders/x111/refunds", Answer: "200"},
						{Direction: exam.Hooked, What: "POST orders/x655/refunds", Answer: "202"},
						{Direction: exam.ToShop, What: "transaction.refunded", Answer: "200"},
						{Direction: exam.ToShop, What: "transaction.paid", Fault: "late", Answer: "200"},
						{Direction: exam.ToShop, What: "transaction.paid", Fault: "late", Answer: "200"},
						{Direction: exam.Event, What: "10m0s later"},
						get,
						{Direction: exam.Event, What: "3h10m0s later"},
					},
				},
				{Scenario: "stale-read", About: "stale", Claims: []exam.Claim{exam.NothingLost}, Status: exam.Skipped, Why: "the fault never happened: stale"},
				{Scenario: "payout-killed", About: "a payout", Claims: []exam.Claim{exam.ChargedOnce}, Status: exam.Skipped, Why: "the hook payouts is not offered"},
				{Scenario: "payout-lost", About: "a payout", Claims: []exam.Claim{exam.ChargedOnce}, Status: exam.Skipped, Why: "the hook payouts is not offered"},
				{Scenario: "chargeback", About: "a card", Claims: []exam.Claim{exam.BooksAgree}, Status: exam.NotRun, Why: "the budget of 30s was used up"},
			},
		},
	}
}

// passed is fixed without what did not pass.
func passed() report.Report {
	r := fixed()
	r.Outcomes = r.Outcomes[:2]
	return r
}

func text(r report.Report) string {
	var b bytes.Buffer
	outcomes := r.Outcomes
	result := *r.Result
	result.Outcomes = nil
	t := &report.Text{To: &b, Total: len(outcomes), Report: report.Report{Result: &result, Flags: r.Flags, Strict: r.Strict}}
	for _, o := range outcomes {
		t.Started(&exam.Scenario{Name: o.Scenario})
		t.Ended(o)
	}
	t.Report = r
	t.Finish()
	return b.String()
}

func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	return b.String()
}

// UPDATE=1 writes the golden files.
func TestTheReportsAreTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, got := range map[string]string{
		"failed.txt":  text(fixed()),
		"failed.xml":  written(t, fixed().JUnit),
		"failed.html": written(t, fixed().HTML),
		"failed.json": written(t, fixed().JSON),
		"passed.txt":  text(passed()),
		"passed.xml":  written(t, passed().JUnit),
	} {
		file := filepath.Join("testdata", name)
		if os.Getenv("UPDATE") != "" {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, name)
	}
}

func TestTheExitCode(t *testing.T) {
	t.Parallel()
	only := func(status ...exam.Status) report.Report {
		r := report.Report{Result: &exam.Result{}}
		for _, s := range status {
			r.Outcomes = append(r.Outcomes, exam.Outcome{Status: s})
		}
		return r
	}
	warned := passed()
	strict := passed()
	strict.Strict = true
	for want, list := range map[int][]report.Report{
		0: {only(exam.Passed), only(exam.Passed, exam.Skipped), warned},
		1: {only(exam.Failed), only(exam.Passed, exam.Failed, exam.NotRun), strict},
		3: {only(exam.Passed, exam.NotRun), only(exam.Skipped), only()},
	} {
		for _, r := range list {
			assert.Equal(t, want, r.Code(), r.Outcomes)
		}
	}
}

// The page has no script, loads nothing, and shows markup of the program as text.
func TestThePageIsSelfContainedAndSafe(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]report.Report{"failed": fixed(), "passed": passed()} {
		page := written(t, r.HTML)
		assert.NotRegexp(t, `(?i)<(script|link|img|iframe|object|embed)|src=|url\(|@import|https?:|javascript:`, page)
		assert.Regexp(t, `<span class="state (good|bad)">`+name+`</span>`, page)
		assert.Contains(t, page, "&lt;script&gt;alert(1)")
		assert.NotContains(t, page, "\x1b")
		assert.Equal(t, name == "passed", strings.Contains(page, "a hook that lies passes"), "the limits are printed with a pass")
		assert.Contains(t, page, "0123abcd&#43;changes")
		assert.Empty(t, unclosed(page))
	}
	incomplete := fixed()
	incomplete.Outcomes = incomplete.Outcomes[3:]
	assert.Contains(t, written(t, incomplete.HTML), `<span class="state open">incomplete</span>`)
}

// unclosed returns the elements that are not closed in their order.
func unclosed(page string) (open []string) {
	for _, tag := range regexp.MustCompile(`<(/?)([a-z0-9]+)[^>]*>`).FindAllStringSubmatch(page, -1) {
		switch {
		case tag[2] == "meta":
		case tag[1] == "":
			open = append(open, tag[2])
		case len(open) == 0 || open[len(open)-1] != tag[2]:
			return append(open, "/"+tag[2])
		default:
			open = open[:len(open)-1]
		}
	}
	return open
}

// The counts of the suite are those of its cases, whatever the program printed.
func TestJUnitIsValidAndItsCountsAgree(t *testing.T) {
	t.Parallel()
	strict := fixed()
	strict.Strict = true
	general := passed()
	general.Strict, general.Outcomes = true, general.Outcomes[1:]
	for _, r := range []report.Report{fixed(), passed(), strict, general, {Result: &exam.Result{}}} {
		var got struct {
			Suite struct {
				Tests    int `xml:"tests,attr"`
				Failures int `xml:"failures,attr"`
				Errors   int `xml:"errors,attr"`
				Skipped  int `xml:"skipped,attr"`
				Cases    []struct {
					Name    string    `xml:"name,attr"`
					Failure *struct{} `xml:"failure"`
					Error   *struct{} `xml:"error"`
					Skipped *struct{} `xml:"skipped"`
				} `xml:"testcase"`
				Out string `xml:"system-out"`
			} `xml:"testsuite"`
		}
		document := written(t, r.JUnit)
		require.NoError(t, xml.Unmarshal([]byte(document), &got), document)
		failures, errs, skipped := 0, 0, 0
		for _, c := range got.Suite.Cases {
			if c.Failure != nil {
				failures++
			}
			if c.Error != nil {
				errs++
			}
			if c.Skipped != nil {
				skipped++
			}
		}
		assert.Equal(t, []int{len(got.Suite.Cases), failures, errs, skipped}, []int{got.Suite.Tests, got.Suite.Failures, got.Suite.Errors, got.Suite.Skipped})
		assert.GreaterOrEqual(t, len(got.Suite.Cases), len(r.Outcomes))
		assert.Equal(t, r.Code() == report.Failed, failures > 0, "a build is red if and only if the exam failed")
		assert.Equal(t, report.Lines(r.Output), got.Suite.Out)
	}
}

func TestTheJSONIsTheResult(t *testing.T) {
	t.Parallel()
	var got exam.Result
	require.NoError(t, json.Unmarshal([]byte(written(t, passed().JSON)), &got))
	assert.Equal(t, *passed().Result, got)
}

func TestSecretsAreMaskedInEveryForm(t *testing.T) {
	t.Parallel()
	const key, secret = "sk_test_exam_1", `whsec "ü/+& 2345678`
	m := report.NewMask(key, secret, "")
	leak := "key=sk_test_exam_1 basic=" + base64.StdEncoding.EncodeToString([]byte(key+":")) + " token=" + base64.StdEncoding.EncodeToString([]byte("token:"+key)) + " url=whsec+%22%C3%BC%2F%2B%26+2345678 json=" + `whsec \"ü/+` + `\u0026 2345678` + " plain=" + secret
	masked := m.Text(leak)
	assert.Equal(t, "key=*** basic=*** token=*** url=*** json=*** plain=***", masked)

	r := fixed()
	r.Command, r.Output, r.ProgramIs, r.Warnings = []string{"shop", key}, leak, leak, []string{leak}
	o := &r.Outcomes[2]
	o.Why, o.Right, o.Failures[0].Text, o.Warnings = leak, leak, leak, []string{leak}
	o.Orders[0].Shop, o.Orders[0].Gateway = leak, leak
	o.Exchange[0] = exam.Message{Direction: exam.ToGateway, What: leak, Fault: leak, Answer: leak}
	m.Result(r.Result)
	for _, all := range []string{text(r), written(t, r.JUnit), written(t, r.HTML), written(t, r.JSON)} {
		assert.Contains(t, all, "***")
		assert.NotContains(t, all, key)
		assert.NotContains(t, all, "2345678")
	}

	var b bytes.Buffer
	w := m.Writer(&b)
	for _, part := range []string{"first\nsk_te", "st_exam", "_1\nlast sk_test_", "exam_1"} {
		n, err := w.Write([]byte(part))
		require.NoError(t, err)
		assert.Equal(t, len(part), n)
	}
	assert.Equal(t, "first\n***\n", b.String())
	w.Flush()
	w.Flush()
	assert.Equal(t, "first\n***\nlast ***\n", b.String())
}

func TestTheProgressIsOneLineOfTheTerminal(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	show := &report.Text{To: &b, Total: 2, Progress: true, Color: true, Report: report.Report{Result: &exam.Result{}}}
	show.Started(&exam.Scenario{Name: "plain"})
	show.Ended(exam.Outcome{Scenario: "plain", Status: exam.Passed})
	show.Started(&exam.Scenario{Name: "cents"})
	assert.Equal(t, "\r\x1b[K1/2 plain\r\x1b[K\x1b[32mok\x1b[0m   plain                      0.0 s\n\r\x1b[K2/2 cents", b.String())
	show.Ended(exam.Outcome{Scenario: "cents", Status: exam.Skipped})
	b.Reset()
	show.Started(&exam.Scenario{Name: "random-1.2.3"})
	assert.Equal(t, "\r\x1b[Krandom-1.2.3", b.String())
	show.Report.Random, show.Report.Took = 2, time.Second
	b.Reset()
	show.Finish()
	assert.Contains(t, b.String(), "\r\x1b[K\n2 scenarios: 1 passed, 1 skipped; 2 random schedules passed; 1.0 s\n")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAReportThatCantBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	for _, write := range []func(io.Writer) error{fixed().JUnit, fixed().HTML, fixed().JSON} {
		require.ErrorContains(t, write(fullDisk{}), "no space left")
	}
}
