package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// The live dialect's idempotency keys (idempotency-header). A key belongs to one request:
// its method, its path and its body.
const (
	idempotencyHeader = "Idempotency-Key"
	replayedHeader    = "Idempotent-Replayed" // "true" on a stored response

	maxIdempotencyKey = 255
)

// storedResponse is a response that is replayed unchanged.
type storedResponse struct {
	*engine.Response

	replayed bool
}

// idempotencyKeys returns the request's Idempotency-Key headers, or nil if the
// header is ignored. idempotency-header names POST and PUT only: PATCH is idempotent anyway.
func (rq *request) idempotencyKeys() []string {
	if !rq.api.cfg.Dialect.Live(spec.IdempotencyHeader) || rq.r.Method != http.MethodPost && rq.r.Method != http.MethodPut {
		return nil
	}
	return rq.r.Header[idempotencyHeader]
}

// once executes a request with idempotency keys, or returns its stored
// response. The body has already been read and checked, so that a slow client
// does not hold the account's lock.
func (rq *request) once(key string, body []byte, do func() (any, *engine.Refusal)) (any, *problem) {
	fingerprint, err := hash(rq.r.Method+" "+rq.r.URL.EscapedPath()+"\n", bytes.Clone(body))
	if err != nil {
		return nil, malformed("The body could not be compared.")
	}
	response, replayed, refusal := rq.account.Once(key, fingerprint, func(held *store.Account) (*engine.Response, *engine.Refusal) {
		rq.account = held
		data, refusal := do()
		if refusal != nil {
			return nil, refusal
		}
		return rq.response(data)
	})
	if refusal != nil {
		rq.w.Header().Del("ETag") // of a version that was not stored
		return nil, refused(refusal)
	}
	return storedResponse{response, replayed}, nil
}

// checkKeys checks the values of the header.
func checkKeys(keys []string) []spec.Violation {
	wrong := spec.Violation{Field: idempotencyHeader, Code: spec.CodeInvalid}
	switch {
	case len(keys) == 0:
		return nil
	case len(keys) > 1:
		wrong.Message = "must be sent once"
	case keys[0] == "":
		wrong.Code, wrong.Message = spec.CodeTooSmall, "must have at least 1 character"
	case len(keys[0]) > maxIdempotencyKey:
		wrong.Code, wrong.Message = spec.CodeTooBig, "must have at most 255 characters"
	case strings.ContainsFunc(keys[0], func(c rune) bool { return c < ' ' || c > '~' }):
		wrong.Message = "must be printable ASCII characters"
	default:
		return nil
	}
	return []spec.Violation{wrong}
}

// response encodes data as it will be sent now and in replays.
func (rq *request) response(data any) (*engine.Response, *engine.Refusal) {
	body, err := respond.Marshal(rq.body(data))
	if err != nil {
		return nil, engine.NewRefusal("ENCODING_FAILED", "The response could not be encoded.")
	}
	return &engine.Response{
		Status: rq.status, ContentType: respond.JSON, ETag: rq.w.Header().Get("ETag"), Body: string(body),
	}, nil
}

func (rq *request) writeStored(s storedResponse) {
	h := rq.w.Header()
	h.Set("X-Request-Id", rq.id)
	if s.replayed {
		h.Set(replayedHeader, "true")
	}
	if s.ETag != "" {
		h.Set("ETag", s.ETag)
	}
	respond.WriteText(rq.w, s.Status, s.ContentType, []byte(s.Body))
}

// hash returns the hash of a prefix and a JSON body, independent of the order
// of members and of white space. It changes body.
func hash(prefix string, body []byte) (string, error) {
	v := jsontext.Value(body)
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(prefix), v...))
	return hex.EncodeToString(sum[:]), nil
}
