package hosted

import (
	_ "embed"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// A language of the page. The first one is the default.
type language struct{ Code, Name string }

func languages() []language {
	return []language{{"en", "English"}, {"pt", "Português"}, {"es", "Español"}}
}

//go:embed words.json
var wordsText []byte

// catalog holds the page's texts by key and language. It is parsed on first
// use: most servers show no page.
var catalog = sync.OnceValue(func() map[string]map[string]string { //nolint:gochecknoglobals // never changes
	var c map[string]map[string]string
	if err := json.Unmarshal(wordsText, &c); err != nil {
		panic("hosted: words.json: " + err.Error())
	}
	return c
})

// words are the texts in one language.
type words struct{ Code string }

// Say returns the text of a key. Values replace the {} placeholders.
func (w words) Say(key string, values ...string) string {
	text := catalog()[key][w.Code]
	for _, v := range values {
		text = strings.Replace(text, "{}", v, 1)
	}
	return text
}

// has reports whether a key has a text.
func (w words) has(key string) bool { return catalog()[key][w.Code] != "" }

// day formats a date and time in Brasília time, the zone of voucher due dates.
func (w words) day(t time.Time) string {
	layout := "02/01/2006 15:04"
	if w.Code == "en" {
		layout = "2 Jan 2006, 15:04"
	}
	return t.In(time.FixedZone("BRT", -3*60*60)).Format(layout) + " (UTC−3)"
}

// choose returns the buyer's language: the one just selected, the one selected
// earlier, or the browser's.
func choose(r *http.Request) words {
	if code := known(r.URL.Query().Get("lang")); code != "" {
		return words{code}
	}
	if c, err := r.Cookie(languageCookie); err == nil && known(c.Value) != "" {
		return words{known(c.Value)}
	}
	return words{accepted(r.Header.Get("Accept-Language"))}
}

// known returns the page's language for a tag such as pt-BR, "" if it has none.
func known(tag string) string {
	code, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
	for _, l := range languages() {
		if l.Code == code {
			return code
		}
	}
	return ""
}

// accepted returns the preferred language of an Accept-Language header.
func accepted(header string) string {
	best, most := languages()[0].Code, 0.0
	for part := range strings.SplitSeq(header, ",") {
		tag, quality, weighed := strings.Cut(part, ";q=")
		q := 1.0
		if weighed {
			q, _ = strconv.ParseFloat(strings.TrimSpace(quality), 64) // 0, "not wanted", if it is malformed
		}
		if code := known(tag); code != "" && q > most {
			best, most = code, q
		}
	}
	return best
}
