package intent

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// QuestionLifetime is how long a question may be decided.
const QuestionLifetime = 5 * time.Minute

// Sealer protects the state of an open question on its way through a client, which may
// change it. All processes that may get the decision need the same key.
type Sealer struct{ key []byte }

// NewSealer returns a Sealer with a secret key of at least 32 bytes.
func NewSealer(key []byte) (*Sealer, error) {
	if len(key) < sha256.Size {
		return nil, fmt.Errorf("intent: the key of approvals must have at least %d bytes", sha256.Size)
	}
	return &Sealer{key}, nil
}

// Seal returns the state of the question whether i may be sent, as of its current round.
func (s *Sealer) Seal(i *Intent, now time.Time) string {
	until := now.Add(QuestionLifetime).Unix()
	return fmt.Sprintf("%d.%d.%s", until, i.Round, s.mac(i, until, i.Round))
}

// Open returns the round of the question that state belongs to. The error is
// ErrForged unless state was sealed for exactly this intent, ErrApproval if it has expired.
// [Journal.Decide] checks that the round is still open.
func (s *Sealer) Open(state string, i *Intent, now time.Time) (round int, err error) {
	parts := strings.Split(state, ".")
	if len(parts) != 3 {
		return 0, ErrForged
	}
	until, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return 0, ErrForged
	}
	if round, err = strconv.Atoi(parts[1]); err != nil {
		return 0, ErrForged
	}
	switch {
	case !hmac.Equal([]byte(parts[2]), []byte(s.mac(i, until, round))):
		return 0, ErrForged
	case now.Unix() > until:
		return 0, ErrApproval
	}
	return round, nil
}

func (s *Sealer) mac(i *Intent, until int64, round int) string {
	h := hmac.New(sha256.New, s.key)
	_, _ = h.Write([]byte(hash(i.ID, i.digest(), strconv.FormatInt(until, 10), strconv.Itoa(round))))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
