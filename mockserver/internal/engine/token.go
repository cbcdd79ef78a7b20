package engine

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway/internal/spec"
)

// The mock's test tokens: the text after the prefix of a card token decides the
// outcome of its charges.

// cardOutcome is the outcome of a charge with a token.
type cardOutcome uint8

const (
	cardPending    cardOutcome = iota // a transaction waits for a control; a subscription's charge is paid
	cardPaid                          // at once
	cardCaptured                      // at once
	cardAuthorized                    // and not captured, live dialect only
	cardRefused
	cardChallenged      // 3-D Secure first
	cardUsed            // the token is rejected, not the charge
	cardExpired         // the same
	cardChargedBack     // paid, charged back later
	cardRenewalsFail    // a subscription's first charge succeeds, all later ones fail
	cardTwoRenewalsFail // only the first two attempts at each renewal fail
	cardNeverPays       // every charge is refused, except the validation of a trial's card
)

var tokenOutcomes = [...]struct {
	name    string
	outcome cardOutcome
	about   string
}{
	{"ok", cardPending, "pending until it is paid; a subscription is charged at once"},
	{"paid", cardPaid, "paid at once"},
	{"captured", cardCaptured, "captured at once"},
	{"authorized", cardAuthorized, "live: authorized until it is paid; a subscription is charged at once"},
	{"refused", cardRefused, "refused; a reason can be added, as in refused_insufficient_funds"},
	{"3ds", cardChallenged, "pending until the payer passes 3-D Secure"},
	{"used", cardUsed, "rejected: the token was used before"},
	{"expired", cardExpired, "rejected: the token is too old"},
	{"chargeback", cardChargedBack, "paid, and charged back a day later"},
	{"renewal_fails", cardRenewalsFail, "a subscription's first charge is paid, its renewals fail"},
	{"renewal_fails_2", cardTwoRenewalsFail, "the first two attempts at each renewal of a subscription fail"},
	{"always_fails", cardNeverPays, "every charge is refused, except the validation of a trial's card"},
}

// TestCard is a card token with a fixed outcome.
type TestCard struct{ Token, Outcome string }

// TestCards lists the single-use test tokens. The text after the name is
// arbitrary, so that each payment can have its own token; pgpm_ instead of
// pgct_ makes it reusable.
func TestCards() []TestCard {
	var list []TestCard
	for _, o := range tokenOutcomes {
		list = append(list, TestCard{"pgct_" + o.name, o.about})
	}
	return list
}

// outcomeOf returns the outcome of a token: that of the longest name with which
// the text after the prefix starts.
func outcomeOf(token string) cardOutcome {
	text, outcome, longest := tokenText(token), cardPending, 0
	for _, o := range tokenOutcomes {
		if len(o.name) > longest && strings.HasPrefix(text, o.name) {
			outcome, longest = o.outcome, len(o.name)
		}
	}
	return outcome
}

func tokenText(token string) string {
	_, text, _ := strings.Cut(token, "_")
	return text
}

const (
	refusalReasonKey = "refusal_reason" // the information of a refused transaction
	refundReasonKey  = "refund_reason"  // the information of a refunded one
	declined         = "declined"       // the reason if a token names none
	canceledByPayer  = "canceled_by_payer"
)

var refusalReasons = [...]string{
	"insufficient_funds", "expired_card", "fraud", "do_not_honor", "lost_card", "stolen_card", "limit_exceeded", "invalid_card",
}

// refusalReason returns why a token's charge is refused.
func refusalReason(token string) string {
	text := strings.TrimPrefix(tokenText(token), "refused_")
	for _, reason := range refusalReasons {
		if strings.HasPrefix(text, reason) {
			return reason
		}
	}
	return declined
}

// checkToken rejects a token that can no longer be charged.
func checkToken(token string, spent bool) *Refusal {
	switch outcome := outcomeOf(token); {
	case spent || outcome == cardUsed:
		return tokenRefusal(CodeTokenUsed,
			"has already been used: a pgct_ token can only be used once; create a new one with the payment element")
	case outcome == cardExpired:
		return tokenRefusal(CodeTokenExpired, "has expired: create a new one with the payment element")
	default:
		return nil
	}
}

func tokenRefusal(code, detail string) *Refusal {
	refusal := Invalid("token", spec.CodeInvalid, detail)
	refusal.Code = code
	return refusal
}

// cardOf returns the card of a token. Its last four digits are those that the token
// ends with, as in pgct_ok_4242. Otherwise they are derived from the token, so that
// they are always the same.
func cardOf(token string) *Card {
	if i := strings.LastIndexByte(token, '_'); len(token)-i == 5 && strings.Trim(token[i+1:], "0123456789") == "" {
		return &Card{Token: token, Last4: token[i+1:]}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(token)) // never fails
	return &Card{Token: token, Last4: strconv.Itoa(1000 + int(h.Sum32()%9000))}
}
