package hosted

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// values are the buyer's input, by the names of the form's fields.
type values map[string]string

// members maps each form field to the request member that it fills in.
var members = map[string]string{ //nolint:gochecknoglobals // never changes
	"name": "buyer.name", "email": "buyer.email", "phone": "buyer.phone", "birth_date": "buyer.birth_date",
	"document_type": "buyer.document.type", "document": "buyer.document.number",
	"street": "buyer.address.street", "number": "buyer.address.number", "complement": "buyer.address.complement",
	"neighborhood": "buyer.address.neighborhood", "city": "buyer.address.city", "state": "buyer.address.state",
	"zip": "buyer.address.zipCode", "country": "buyer.address.country",
	"method": "payment_method", "outcome": "token", "installments": "installments",
}

// read reads the fields of a form.
func read(form url.Values) values {
	v := values{}
	for name := range members {
		v[name] = strings.TrimSpace(form.Get(name))
	}
	for _, name := range [...]string{"attempt", "amount", "currency"} {
		v[name] = form.Get(name)
	}
	return v
}

// valuesOf returns the values that a session already has.
func valuesOf(s *engine.Session) values {
	b := s.Buyer
	v := values{"name": b.Name, "email": b.Email, "phone": b.Phone, "birth_date": b.BirthDate, "method": s.Method}
	if d := b.Document; d != nil {
		v["document_type"], v["document"] = d.Type, d.Number
	}
	if a := b.Address; a != nil {
		v["street"], v["number"], v["complement"], v["neighborhood"] = a.Street, a.Number, a.Complement, a.Neighborhood
		v["city"], v["state"], v["zip"], v["country"] = a.City, a.State, a.ZipCode, a.Country
	}
	return v
}

// pay fills in the session and starts its payment, as the buyer's browser would
// with the interface's own calls. The form's attempt is the payment's
// idempotency key, so a form that is sent twice pays once.
func (v *visit) pay(in values) {
	a := v.call(http.MethodPatch, "/session", v.filled(in))
	if a.status == http.StatusOK {
		a = v.call(http.MethodPost, "/pay", v.payload(in))
	}
	switch a.status {
	case http.StatusOK, http.StatusUnauthorized, http.StatusConflict: // started now, or before
		v.redirect("")
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		v.render(http.StatusUnprocessableEntity, v.pageOfForm("", in, v.missing(in, a.problem.Errors)))
	case http.StatusGone:
		if v.open() { // the session had expired, not the link
			v.render(http.StatusGone, v.pageOfForm(noticeExpired, in, nil))
		}
	default:
		v.fail(a.status, a.problem.Detail)
	}
}

// missing adds to the errors of one call what the payment would lack after it: a buyer
// sees all errors at once.
func (v *visit) missing(in values, found []spec.Violation) []spec.Violation {
	s := engine.Session{Method: in["method"], Buyer: &engine.Buyer{
		Name: in["name"], Email: in["email"], Address: &engine.Address{ZipCode: in["zip"]},
	}}
	return append(found, engine.Missing(engine.Env{Dialect: v.pages.core.Dialect}, &s)...)
}

// testBuyer is a buyer with whom every method can be paid.
func testBuyer() values {
	return values{
		"name": "Ana Souza", "email": "ana@example.com", "phone": "11987654321", "birth_date": "1990-05-17",
		"document_type": "CPF", "document": "52998224725", "street": "Rua das Flores", "number": "10", "complement": "ap 42",
		"neighborhood": "Centro", "city": "São Paulo", "state": "SP", "zip": "01001-000", "country": "BR",
	}
}

// filled is the body that fills in the session. Name and e-mail are sent even
// if they are empty, so that the interface reports them.
func (v *visit) filled(in values) map[string]any {
	buyer := map[string]any{
		"name": in["name"], "email": in["email"], "phone": orNull(in["phone"]), "birth_date": orNull(in["birth_date"]),
		"document": nil, "address": nil,
	}
	if in["document"] != "" {
		buyer["document"] = map[string]any{"type": in["document_type"], "number": in["document"]}
	}
	if address := v.address(in); address != nil {
		buyer["address"] = address
	}
	body := map[string]any{"buyer": buyer}
	if in["method"] != "" {
		body["payment_method"] = in["method"]
	}
	return body
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// address returns nil if the buyer typed no address and none is needed.
func (v *visit) address(in values) map[string]any {
	address, typed := map[string]any{"street": in["street"], "city": in["city"]}, in["street"]+in["city"] != ""
	for _, name := range [...]string{"number", "complement", "neighborhood", "state", "zip"} {
		if in[name] != "" {
			address[strings.TrimPrefix(members[name], "buyer.address.")], typed = in[name], true
		}
	}
	if in["country"] != "" {
		address["country"] = in["country"]
	}
	if !typed && (v.pages.core.Dialect.Live(spec.VoucherAddress) || in["method"] != string(gateway.Voucher)) {
		return nil
	}
	return address
}

// payload is the body that starts the payment. It includes the price that the
// buyer saw.
func (v *visit) payload(in values) map[string]any {
	body := map[string]any{
		"session_token": v.session.Token, "idempotency_key": "page-" + in["attempt"], "currency": in["currency"],
	}
	if n, err := strconv.ParseInt(in["amount"], 10, 64); err == nil {
		body["amount"] = n
	}
	if in["method"] == string(gateway.CreditCard) {
		body["token"] = v.cardToken(in)
		if n, err := strconv.Atoi(in["installments"]); err == nil {
			body["installments"] = n
		}
	}
	return body
}

// cardToken returns a test token for the outcome that the buyer chose, in place of
// the one that a payment element would create. Every attempt has its own.
func (v *visit) cardToken(in values) string {
	if !slices.Contains(outcomes(), in["outcome"]) {
		return ""
	}
	sum := sha256.Sum256([]byte(v.session.ID + " " + in["attempt"]))
	return "pgct_" + in["outcome"] + "_" + hex.EncodeToString(sum[:8]) + "_4242"
}

// outcomes lists the engine's test-token outcomes that a buyer can choose from.
func outcomes() []string {
	return []string{
		"paid", "captured", "ok", "3ds", "refused", "refused_insufficient_funds", "refused_expired_card", "refused_do_not_honor",
		"refused_fraud", "chargeback", "used", "expired",
	}
}

// moves are the actions that the bank or the buyer can take on a payment.
func moves() map[string]store.Transition[engine.Transaction] {
	return map[string]store.Transition[engine.Transaction]{
		"pay":    engine.Pay,
		"expire": engine.Expire,
		"refuse": engine.Refuse,
		"cancel": engine.Cancel,
		"pass":   engine.PassChallenge,
		"fail":   engine.FailChallenge,
	}
}

// move performs one of moves on the payment that the form shows. A payment that
// another tab has started since is left unchanged.
func (v *visit) move(name string) {
	transition, known := moves()[name]
	if !known || !v.began() || v.r.PostForm.Get("payment") != v.payment.ID {
		v.redirect(noticeLate)
		return
	}
	_, refusal := v.causing("checkout page "+name).Transaction(v.payment.ID, transition)
	switch {
	case refusal == nil:
		v.redirect("")
	case refusal.Code == engine.CodeInvalidState:
		v.redirect(noticeLate)
	default:
		v.fail(httpapi.StatusOf(refusal), refusal.Detail)
	}
}

// errorsOf groups the interface's violations by the fields of the form. Those
// without a field have the name "".
func errorsOf(found []spec.Violation) map[string]spec.Violation {
	byField := map[string]spec.Violation{}
	for _, violation := range found {
		name := ""
		for field, member := range members {
			if member == violation.Field {
				name = field
			}
		}
		if _, taken := byField[name]; !taken {
			byField[name] = violation
		}
	}
	return byField
}
