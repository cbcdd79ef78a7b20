package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/masking"
)

// Mask hides secrets that a program prints or that a command line has.
type Mask struct {
	plain *strings.Replacer
	basic []*regexp.Regexp // Base64 words that contain a secret
}

// NewMask returns a mask of secrets: as they are, and as they are in JSON, in a URL
// and in Basic credentials.
func NewMask(secrets ...string) Mask {
	var m Mask
	var pairs []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		forms := []string{s, url.QueryEscape(s), url.PathEscape(s)}
		if quoted, err := json.Marshal(s); err == nil { // a string can always be encoded
			forms = append(forms, string(quoted[1:len(quoted)-1]))
		}
		// As the user name, or as the password of the user "token".
		whole := base64.StdEncoding.EncodeToString([]byte(s[:len(s)/3*3]))
		m.basic = append(m.basic, regexp.MustCompile(`[A-Za-z0-9+/]*`+regexp.QuoteMeta(whole)+`[A-Za-z0-9+/=]*`))
		for _, form := range forms {
			pairs = append(pairs, form, masking.Masked)
		}
	}
	m.plain = strings.NewReplacer(pairs...)
	return m
}

// Text returns s without the secrets.
func (m Mask) Text(s string) string {
	s = m.plain.Replace(s)
	for _, word := range m.basic {
		s = word.ReplaceAllString(s, masking.Masked)
	}
	return s
}

// Texts returns a copy of the list without the secrets.
func (m Mask) Texts(list []string) []string {
	masked := make([]string, len(list))
	for i, s := range list {
		masked[i] = m.Text(s)
	}
	return masked
}

// Outcome returns a copy without the secrets.
func (m Mask) Outcome(o exam.Outcome) exam.Outcome {
	o.Why, o.Right, o.Warnings = m.Text(o.Why), m.Text(o.Right), m.Texts(o.Warnings)
	failures := make([]exam.Finding, len(o.Failures))
	for i, f := range o.Failures {
		failures[i] = exam.Finding{Claim: f.Claim, Text: m.Text(f.Text)}
	}
	orders := make([]exam.OrderBooks, len(o.Orders))
	for i, s := range o.Orders {
		s.Shop, s.Gateway = m.Text(s.Shop), m.Text(s.Gateway)
		orders[i] = s
	}
	exchange := make([]exam.Message, len(o.Exchange))
	for i, e := range o.Exchange {
		e.What, e.Fault, e.Answer = m.Text(e.What), m.Text(e.Fault), m.Text(e.Answer)
		exchange[i] = e
	}
	o.Failures, o.Orders, o.Exchange = failures, orders, exchange
	return o
}

// Result removes the secrets from a result.
func (m Mask) Result(r *exam.Result) {
	r.Command, r.Warnings, r.Output, r.ProgramIs = m.Texts(r.Command), m.Texts(r.Warnings), m.Text(r.Output), m.Text(r.ProgramIs)
	for i, o := range r.Outcomes {
		r.Outcomes[i] = m.Outcome(o)
	}
}

// Writer passes on whole lines without the secrets.
type Writer struct {
	mask Mask
	to   io.Writer

	mu   sync.Mutex
	rest []byte
}

// Writer returns a writer that hides the secrets in what it passes on.
func (m Mask) Writer(to io.Writer) *Writer { return &Writer{mask: m, to: to} }

const maxLine = 64 << 10

// Write implements io.Writer. A line that has not ended waits for the rest of it, as a
// secret could be cut in two.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	if end == 0 && len(w.rest) > maxLine {
		end = len(w.rest)
	}
	_, err := io.WriteString(w.to, w.mask.Text(string(w.rest[:end])))
	w.rest = append(w.rest[:0], w.rest[end:]...)
	return len(b), err
}

// Flush writes a last line that did not end.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		_, _ = io.WriteString(w.to, w.mask.Text(string(w.rest))+"\n")
	}
	w.rest = nil
}
