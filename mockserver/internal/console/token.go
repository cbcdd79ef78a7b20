package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
)

// tokens issues and checks the tokens of forms, so that only a page of this
// console can send a form, and each at most once: a double click acts once.
type tokens struct {
	secret []byte
	used   *used
}

// used has the latest tokens whose forms were executed.
type used struct {
	mu   sync.Mutex
	seen map[string]bool
	ring []string
	next int
}

// remembered is how many used tokens are kept.
const remembered = 4096

func newTokens() tokens {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return tokens{secret: secret, used: &used{seen: map[string]bool{}, ring: make([]string, remembered)}}
}

// issue returns a new token.
func (t tokens) issue() string {
	nonce := rand.Text()
	return nonce + "." + t.sign(nonce)
}

func (t tokens) sign(nonce string) string {
	mac := hmac.New(sha256.New, t.secret)
	mac.Write([]byte(nonce))
	return hex.EncodeToString(mac.Sum(nil))
}

// valid reports whether a token was issued here.
func (t tokens) valid(token string) bool {
	nonce, sum, _ := strings.Cut(token, ".")
	return hmac.Equal([]byte(sum), []byte(t.sign(nonce)))
}

// take uses a token up; it reports whether it was unused.
func (t tokens) take(token string) bool {
	u := t.used
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen[token] {
		return false
	}
	delete(u.seen, u.ring[u.next])
	u.ring[u.next] = token
	u.next = (u.next + 1) % len(u.ring)
	u.seen[token] = true
	return true
}

// giveBack makes a token usable again, if its form was not executed.
func (t tokens) giveBack(token string) {
	t.used.mu.Lock()
	defer t.used.mu.Unlock()
	delete(t.used.seen, token)
}

// note is a message that the next page shows.
type note struct {
	Text string
	Curl string // the same action as a command
	Link string // to what was created
}

// notes are the latest messages.
type notes struct {
	byID map[string]note
	ring []string
}

// maxNotes is how many messages are kept.
const maxNotes = 64

// addNote keeps a message and returns its name.
func (c *Console) addNote(n note) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.notes.byID == nil {
		c.notes.byID = map[string]note{}
	}
	if len(c.notes.ring) == maxNotes {
		delete(c.notes.byID, c.notes.ring[0])
		c.notes.ring = c.notes.ring[1:]
	}
	id := rand.Text()
	c.notes.byID[id] = n
	c.notes.ring = append(c.notes.ring, id)
	return id
}

// findNote returns the message that the URL names, or nil if there is none.
func (rq *request) findNote() *note {
	id := rq.r.URL.Query().Get("note")
	if id == "" {
		return nil
	}
	rq.mu.Lock()
	defer rq.mu.Unlock()
	n, ok := rq.notes.byID[id]
	if !ok {
		return nil
	}
	return &n
}
