package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/exam"
)

type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suite   suite    `xml:"testsuite"`
}

type suite struct {
	Name       string     `xml:"name,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	Time       string     `xml:"time,attr"`
	Timestamp  string     `xml:"timestamp,attr"`
	Properties []property `xml:"properties>property"`
	Cases      []testcase `xml:"testcase"`
	Out        string     `xml:"system-out,omitempty"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testcase struct {
	Name      string  `xml:"name,attr"`
	Classname string  `xml:"classname,attr"`
	Time      string  `xml:"time,attr"`
	Skipped   *reason `xml:"skipped"`
	Error     *reason `xml:"error"`
	Failure   *reason `xml:"failure"`
	Out       string  `xml:"system-out,omitempty"`
}

type reason struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes a test case for each scenario. A scenario that was not run is an error,
// as a suite that did not end should not be green.
func (r Report) JUnit(w io.Writer) error {
	s := suite{
		Name: "mockgateway exam", Time: decimal(r.Took), Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"), Out: Lines(r.Output),
	}
	for _, p := range r.facts() {
		s.Properties = append(s.Properties, property{strings.ToLower(p.Name), p.Value})
	}
	for i := range r.Outcomes {
		s.Cases = append(s.Cases, r.testcase(&r.Outcomes[i]))
	}
	if len(r.Warnings) > 0 {
		c := testcase{Name: "warnings of the exam", Classname: classname, Time: decimal(0)}
		r.warn(&c, r.Warnings)
		s.Cases = append(s.Cases, c)
	}
	for _, c := range s.Cases {
		s.Tests++
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	text, err := xml.MarshalIndent(suites{Suite: s}, "", "  ")
	if err != nil {
		return err
	}
	// Attributes have no line breaks; elsewhere they need no escape.
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, bytes.ReplaceAll(text, []byte("&#xA;"), []byte("\n")))
	return err
}

const classname = "mockgateway.exam"

// warn adds warnings to a test case, which fail it if they fail the exam.
func (r Report) warn(c *testcase, warnings []string) {
	for _, w := range warnings {
		c.Out += "warning: " + clean(w) + "\n"
	}
	if r.Strict && len(warnings) > 0 && c.Failure == nil {
		c.Failure, c.Skipped, c.Error = &reason{Message: clean(warnings[0]), Type: "warning", Text: c.Out}, nil, nil
	}
}

func (r Report) testcase(o *exam.Outcome) testcase {
	c := testcase{Name: o.Scenario, Classname: classname, Time: decimal(o.Took)}
	switch o.Status {
	case exam.Passed:
	case exam.Skipped:
		c.Skipped = &reason{Message: clean(o.Why)}
	case exam.NotRun:
		c.Error = &reason{Message: "not run: " + clean(o.Why), Type: "not run"}
	case exam.Failed:
		c.Failure = &reason{Type: join(claims(o)), Text: "\n" + o.About + "\n" + r.failure(o, "")}
		if len(o.Failures) > 0 {
			c.Failure.Message = clean(o.Failures[0].Text)
		}
	}
	r.warn(&c, o.Warnings)
	return c
}

func decimal(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// fact is a line of the head of a report.
type fact struct{ Name, Value string }

func (r Report) facts() []fact {
	list := []fact{
		{"Date", r.Started.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"Command", quoted(r.Command)},
		{"Commit", clean(r.Commit)},
		{"Version", clean(r.Version)},
		{"Dialect", clean(r.Dialect)},
		{"Seed", strconv.FormatUint(r.Seed, 10)},
		{"Flags", quoted(r.Flags)},
	}
	known := list[:0]
	for _, f := range list {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}
