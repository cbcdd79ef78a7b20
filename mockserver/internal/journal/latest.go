package journal

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/internal/masking"
)

// Latest lists up to n masked requests of an account, newest first, and reports
// whether there are more. "" means all accounts. match gets masked entries; nil
// matches all.
func (j *Journal) Latest(account string, n int, match func(*Entry) bool) (list []Entry, more bool) {
	return j.latest(account, n, func(*record) bool { return true }, match)
}

// Mentioning is like [Journal.Latest], for the requests whose path, body or response
// contains the id of a resource, and those that create one with its reference: the
// response may have been lost, or a repeat rejected. The reference may be "".
func (j *Journal) Mentioning(account string, n int, id, path, reference string) (list []Entry, more bool) {
	quoted, err := json.Marshal(reference)
	creates := func(rec *record) bool {
		return err == nil && reference != "" && rec.request.Method == http.MethodPost && rec.request.URL.Path == path && bytes.Contains(rec.body.head, quoted)
	}
	return j.latest(account, n, func(rec *record) bool {
		return strings.Contains(rec.request.URL.Path, id) || bytes.Contains(rec.body.head, []byte(id)) ||
			bytes.Contains(rec.response.head, []byte(id)) || creates(rec)
	}, nil)
}

// WithRequestID lists up to n masked requests of an account that have an X-Request-Id, in
// any case, newest first.
func (j *Journal) WithRequestID(account string, n int, id string) []Entry {
	list, _ := j.latest(account, n, func(rec *record) bool { return strings.EqualFold(rec.header.Get("X-Request-Id"), id) }, nil)
	return list
}

// latest masks only the entries that it returns or passes to match.
func (j *Journal) latest(account string, n int, has func(*record) bool, match func(*Entry) bool) (list []Entry, more bool) {
	j.mu.Lock()
	records := slices.Clone(j.list)
	j.mu.Unlock()
	for _, rec := range slices.Backward(records) {
		if account != "" && j.cfg.Account(&rec.request) != account || !has(rec) {
			continue
		}
		e := j.entry(rec)
		if match != nil && !match(&e) {
			continue
		}
		if len(list) == n {
			return list, true
		}
		list = append(list, e)
	}
	return list, false
}

// Entry returns one masked request of an account; "" means any account.
func (j *Journal) Entry(account string, id uint64) (Entry, bool) {
	j.mu.Lock()
	i := slices.IndexFunc(j.list, func(rec *record) bool { return rec.id == id })
	var rec *record
	if i >= 0 {
		rec = j.list[i]
	}
	j.mu.Unlock()
	if rec == nil || account != "" && j.cfg.Account(&rec.request) != account {
		return Entry{}, false
	}
	return j.entry(rec), true
}

// Masked returns a JSON body with its secrets masked as in an [Entry], and ""
// if it is not JSON.
func (j *Journal) Masked(body []byte) string {
	m := &mask{keys: j.keys}
	shown, err := masking.Rewrite(body, masking.Token)
	if err != nil {
		return ""
	}
	return m.text(shown)
}
