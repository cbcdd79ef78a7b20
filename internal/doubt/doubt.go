// Package doubt decides what became of a create in doubt: one that was sent, and whose
// response was lost. It is repeated under its reference. If the gateway rejects the
// repeats, that proves nothing about the first request: only reads of the list in which
// the reference is absent do.
package doubt

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// Reads is how many reads in a row must miss a resource before it counts as absent: one
// may have come from a replica that lags behind. As many repeats in a row must be
// rejected before anything is read: one rejection may have come from a proxy.
const Reads = 3

// Sentinel returns the name of the sentinel that an error matches, if the sentinel can
// decide a create: "duplicate", "conflict", "validation", "not_found" or "retired". It is
// "" for any other error.
func Sentinel(err error) string {
	switch {
	case errors.Is(err, gateway.ErrDuplicate):
		return "duplicate"
	case errors.Is(err, gateway.ErrConflict):
		return "conflict"
	case errors.Is(err, gateway.ErrValidation):
		return "validation"
	case errors.Is(err, gateway.ErrNotFound):
		return "not_found"
	case errors.Is(err, gateway.ErrRetired):
		return "retired"
	default:
		return ""
	}
}

// Kind is [Sentinel] for the error of a call, "" if the gateway did not reject it.
func Kind(err error) string {
	if !ByGateway(err) {
		return ""
	}
	return Sentinel(err)
}

// KindOfRepeat is [Kind] for the error of a repeat, which is an unknown outcome whatever
// the gateway responded. It never returns "duplicate".
func KindOfRepeat(err error) string {
	e, ok := errors.AsType[*gateway.Error](err)
	if !ok || !ByGateway(err) {
		return ""
	}
	switch status := e.StatusCode; {
	case status == 404:
		return "not_found"
	case status == 409:
		return "conflict"
	case status == 410:
		return "retired"
	case status == 0 && len(e.Fields) > 0: // by the client, whose rules are stricter than those of the release that sent the first request
		return "validation"
	case status == 400, status == 422:
		return "validation"
	default:
		return ""
	}
}

// ByGateway reports whether the gateway itself, or the client before it sent
// anything, rejected the call. A proxy's page says nothing about the request,
// and a key that is in use says that a request with it is.
func ByGateway(err error) bool {
	e, ok := errors.AsType[*gateway.Error](err)
	if !ok {
		return errors.Is(err, gateway.ErrValidation)
	}
	// A live gateway returns the resource that has the reference with a 200, and the
	// client compares it.
	if e.StatusCode == 0 || e.Existing != nil && errors.Is(err, gateway.ErrDuplicate) {
		return true
	}
	inside, formatted := readRejection(e.Body)
	status := e.StatusCode
	if status < 300 { // with "success": false
		status = inside
	}
	switch status {
	case 400, 404, 409, 410, 422:
		return formatted && !strings.HasPrefix(strings.ToUpper(e.Code), "IDEMPOTENCY_KEY")
	}
	return false
}

// readRejection reports whether a body has one of the gateway's formats for
// errors, and the status that it contains. "message", "status" and an "error" in words
// are what proxies send too; an "error" that is a code is not.
func readRejection(body []byte) (status int, formatted bool) {
	// As the client decodes responses: an invalid character must not hide a rejection.
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return 0, false
	}
	_, _ = dec.ReadToken()
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			break
		}
		member, kind := name.String(), dec.PeekKind()
		value, err := dec.ReadValue()
		switch {
		case err != nil: // the body may have been cut
			return status, formatted
		case member == "status" && kind == '0':
			status, _ = strconv.Atoi(string(value))
		case member == "error" && kind == '"':
			code, _ := jsontext.AppendUnquote(nil, value)
			formatted = formatted || wire.IsCode(string(code))
		case member == "error" && kind == '{':
			inside, ok := readRejection(value)
			status, formatted = cmp.Or(status, inside), formatted || ok
		case slices.Contains([]string{"type", "title", "code", "errors", "validation_errors", "success"}, member):
			formatted = true
		}
	}
	return status, formatted
}

// ClockSkew is how far the gateway's clock may differ from the caller's.
const ClockSkew = time.Hour

// TooOld reports whether an item of a list, newest first, was created long before a
// request that was first sent so long ago. Ages are relative to the newest item, so that
// the gateway's clock and the caller's need not agree. Without a creation time, or if the
// caller's clock was set back since, nothing is too old.
func TooOld(newest, created time.Time, ago time.Duration) bool {
	return ago >= 0 && !newest.IsZero() && !created.IsZero() && newest.Sub(created) > ago+ClockSkew
}

// TransferDiffers says in what a transfer is not the requested one; "" if it is. Pix keys
// are compared in one format: the gateway may return a key without punctuation, or with
// a country code.
func TransferDiffers(p *gateway.TransferParams, t *gateway.Transfer) string {
	requested, _ := spec.NormalPixKey(string(p.PixKeyType), string(p.PixKeyValue))
	returned, _ := spec.NormalPixKey(string(p.PixKeyType), string(t.PixKey))
	switch {
	case t.ExternalRef != "" && t.ExternalRef != p.ExternalRef:
		return "the transfer " + t.ID + " has another reference"
	case t.Amount != p.Amount:
		return "the transfer " + t.ID + " has the reference but another amount"
	case t.PixKeyType != "" && t.PixKeyType != p.PixKeyType, t.PixKey != "" && returned != requested:
		return "the transfer " + t.ID + " has the reference but pays to another Pix key"
	}
	return ""
}

// TransactionDiffers says in what a transaction is not the requested one; "" if it is. It
// compares what was charged: a gateway may report the settled amount in amount.
func TransactionDiffers(p *gateway.TransactionParams, t *gateway.Transaction) string {
	switch {
	case t.ExternalRef != "" && t.ExternalRef != p.ExternalRef:
		return "the transaction " + t.ID + " has another reference"
	case !t.AmountIs(p.Amount):
		return "the transaction " + t.ID + " has the reference but another amount"
	case t.Method != p.Method:
		return "the transaction " + t.ID + " has the reference but another method"
	case t.Currency != "" && t.Currency != cmp.Or(p.Currency, gateway.BRL):
		return "the transaction " + t.ID + " has the reference but another currency"
	}
	return ""
}
