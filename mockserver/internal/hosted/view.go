package hosted

import (
	"bytes"
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/console"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
	"github.com/gateway-go/gateway/pix"
)

// page is the data of the template. Its strings are as the buyer or the merchant
// wrote them: html/template escapes them all.
type page struct {
	words

	State  string // form, pix, voucher, card, challenge, paid, returned, gone, missing, failed
	Reason string // why a page is gone or has failed
	Notice string

	Slug        string
	Title       string
	Description string
	Items       []item
	Total       string
	Languages   []language
	Version     string // see [visit.version]; "" is a page that does not change
	Bank        []string
	Return      string // the merchant's page for this state, if it has one
	Form        *formPage
	Payment     *paymentPage
	FormToken   string
	Fill        bool   // the form can be filled in with test data
	Console     string // the page about this one in the console; "" if there is none
	Assets      string // part of the addresses of the page's files
}

type item struct {
	Name, Description, Price string
	Quantity                 int
	Sum                      string
}

func itemsOf(l *engine.Link, products engine.Catalog) []item {
	list := make([]item, len(l.Items))
	for i, sold := range l.Items {
		p := products(sold.ProductID)
		currency := l.CurrencyOf(p)
		list[i] = item{
			Name: p.Name, Description: p.Description, Quantity: sold.Quantity, Price: money(p.Price, currency),
			Sum: money(min(p.Price, spec.MaxSafeAmount/int64(max(sold.Quantity, 1)))*int64(sold.Quantity), currency),
		}
	}
	return list
}

// paymentPage is the pending or completed payment of a session.
type paymentPage struct {
	ID, Method, Status string
	Amount             string
	Due, Left          string
	Code               string // to copy: the Pix code, or the voucher's digitable line
	Picture            template.HTML
	Last4              string
	PaidAt, EndToEndID string
	Returned           string // the sentence about a payment that is no longer paid, if its state has one
	Again              bool   // another payment can be made
}

// render writes a page.
func (v *visit) render(status int, p *page) {
	p.words, p.Languages, p.Assets = v.words, languages(), assetVersion()
	if l := v.link; l != nil {
		p.Slug, p.Title, p.Description, p.Items = l.Slug, l.Title, l.Description, v.items
		p.Total = money(v.total, l.Currency)
	}
	p.Title = cmp.Or(p.Title, v.words.Say("checkout"))
	p.Fill, p.Console = p.State == "form", v.console()
	if v.session != nil {
		p.FormToken = formToken(v.session.Token)
	}
	var b bytes.Buffer
	if err := pageTemplate().ExecuteTemplate(&b, "page", p); err != nil {
		http.Error(v.w, "the page could not be written", http.StatusInternalServerError)
		return
	}
	if code := known(v.r.URL.Query().Get("lang")); code != "" {
		v.cookie(&http.Cookie{Name: languageCookie, Value: code, Path: httpapi.PagePath})
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", v.words.Code)
	h.Set("Vary", "Accept-Language, Cookie")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes()) // fails only if the buyer has left
}

// console returns the console's page about the payment or the link.
func (v *visit) console() string {
	if !v.pages.core.Console || v.link == nil {
		return ""
	}
	account := console.Path(v.pages.core, v.key)
	if v.payment != nil {
		return account + "/transactions/" + v.payment.ID
	}
	return account + "/links/" + v.link.Slug
}

// pageOfPayment shows a payment, with its bank's possible actions.
func (v *visit) pageOfPayment(notice string) *page {
	t := v.payment
	p := &page{Notice: notice, Version: v.version(), Payment: v.paymentPage()}
	switch {
	case !engine.Processing(v.session) && v.words.has("status."+t.Status):
		p.State = "returned"
	case !engine.Processing(v.session):
		p.State, p.Return = "paid", webURL(v.link.SuccessURL)
	case t.NextAction != nil:
		p.State, p.Bank = "challenge", []string{"expire"}
	case t.Pix != nil:
		p.State, p.Bank = "pix", []string{"pay", "expire"}
	case t.Voucher != nil:
		p.State, p.Bank = "voucher", []string{"pay", "expire"}
	default:
		p.State, p.Bank = "card", []string{"pay", "refuse"}
	}
	return p
}

func (v *visit) paymentPage() *paymentPage {
	t := v.payment
	p := &paymentPage{
		ID: t.ID, Method: t.Method, Status: t.Status, Amount: money(t.Amount, t.Currency), Left: v.left(), Again: engine.Active(v.link),
	}
	if until, ok := engine.Deadline(t); ok {
		p.Due = v.words.day(until)
	}
	if !t.PaidAt.IsZero() {
		p.PaidAt = v.words.day(t.PaidAt)
	}
	if v.words.has("returned." + t.Status) {
		p.Returned = "returned." + t.Status
	}
	if t.Card != nil {
		p.Last4 = t.Card.Last4
	}
	switch {
	case t.Pix != nil:
		p.Code, p.EndToEndID = t.QRCode(), t.Pix.EndToEndID
		if picture, err := pix.Draw(p.Code); err == nil {
			p.Picture = template.HTML(picture.SVG()) //nolint:gosec // numbers alone
		}
	case t.Voucher != nil && t.Voucher.Barcode != "":
		p.Code = t.Voucher.DigitableLine
		p.Picture = template.HTML(paymentcode.Bars(t.Voucher.Barcode)) //nolint:gosec // numbers alone
	}
	return p
}

// webURL returns a merchant's address if it is an http or https URL: a link may
// have any string there.
func webURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return s
}

// formPage is the form in which a buyer orders.
type formPage struct {
	Methods      []choice
	Buyer        []field
	Address      []field
	Outcome      field
	Installments field
	Errors       []field // those with an error, for the list above the form
	General      string  // an error without a field
	Amount       int64
	Currency     string
	Attempt      int
	Submit       string
	Unpayable    bool
	Last         string // the outcome of the previous attempt
	LastReason   string
}

type choice struct {
	Value, Label, Hint string
	Chosen             bool
}

// field is one input of the form.
type field struct {
	Name, Label, Type, Value, Error string
	Autocomplete                    string
	Note                            string
	Required                        bool
	Half                            bool // beside its neighbor if there is room
	Options                         []choice
}

// pageOfForm shows the form with the buyer's input and the interface's errors.
func (v *visit) pageOfForm(notice string, in values, found []spec.Violation) *page {
	f := &formPage{
		Amount: v.total, Currency: v.link.Currency, Attempt: len(v.session.Attempts) + 1,
		Submit: v.words.Say("submit", money(v.total, v.link.Currency)), Unpayable: v.total < spec.MinAmount || v.total > spec.MaxAmount,
	}
	method := in["method"]
	if !slices.Contains(v.link.PaymentMethods, method) {
		method = v.link.PaymentMethods[0]
	}
	for _, m := range v.link.PaymentMethods {
		f.Methods = append(f.Methods, choice{m, v.words.Say("method." + m), v.words.Say("hint." + m), m == method})
	}
	w := inputs{words: v.words, in: in, wrong: errorsOf(found), addressed: !v.pages.core.Dialect.Live(spec.VoucherAddress)}
	f.Buyer, f.Address = w.buyer(), w.address()
	f.Outcome = w.choose("outcome", "outcome.", outcomes(), "paid")
	f.Installments = w.choose("installments", "", installments(), "1")
	for _, list := range [][]field{f.Buyer, f.Address, {f.Outcome, f.Installments}} {
		for _, one := range list {
			if one.Error != "" {
				f.Errors = append(f.Errors, one)
			}
		}
	}
	if _, general := w.wrong[""]; general || w.wrong["method"].Code != "" {
		f.General = v.words.Say("error.other")
	}
	if t := v.last; t != nil && found == nil {
		f.Last = v.words.Say("last." + t.Status)
		for _, info := range t.Informations {
			f.LastReason += v.words.Say("reason." + info.Value)
		}
	}
	p := &page{State: "form", Notice: notice, Version: v.version(), Form: f, Return: webURL(v.link.CancelURL)}
	return p
}

func installments() (list []string) {
	for n := spec.MinInstallments; n <= spec.MaxInstallments; n++ {
		list = append(list, strconv.Itoa(n))
	}
	return list
}

// inputs returns the fields of a form.
type inputs struct {
	words

	in        values
	wrong     map[string]spec.Violation
	addressed bool // a voucher needs an address
}

func (w inputs) field(name, kind, autocomplete string) field {
	return field{
		Name: name, Label: w.Say(name), Type: kind, Value: w.in[name], Autocomplete: autocomplete, Error: w.message(name),
	}
}

// message returns the error of a field in the buyer's language.
func (w inputs) message(name string) string {
	violation, found := w.wrong[name]
	switch {
	case !found:
		return ""
	case spec.ContainsCardNumber(w.in[name]):
		return w.Say("error.card")
	case w.in[name] == "" && name != "outcome":
		return w.Say("error.required")
	case w.has("error." + name):
		return w.Say("error." + name)
	default:
		return w.Say("error." + violation.Code)
	}
}

func (w inputs) buyer() []field {
	name, email := w.field("name", "text", "name"), w.field("email", "email", "email")
	name.Required, email.Required = true, true
	kinds := w.choose("document_type", "document_type.", slices.Collect(spec.DocumentTypes.All()), "CPF")
	number, phone, born := w.field("document", "text", "off"), w.field("phone", "tel", "tel"), w.field("birth_date", "date", "bday")
	kinds.Half, number.Half, phone.Half, born.Half = true, true, true, true
	return w.note([]field{name, email, kinds, number, phone, born})
}

func (w inputs) address() []field {
	list := []field{
		w.field("street", "text", "address-line1"), w.field("number", "text", "off"), w.field("complement", "text", "address-line2"),
		w.field("neighborhood", "text", "address-level3"), w.field("city", "text", "address-level2"), w.field("state", "text", "address-level1"),
		w.field("zip", "text", "postal-code"), w.choose("country", "country.", slices.Collect(spec.Countries.All()), string(gateway.Brazil)),
	}
	for i := range list {
		list[i].Half = i > 0
		list[i].Required = w.addressed && slices.Contains([]string{"street", "city", "zip"}, list[i].Name)
	}
	return w.note(list)
}

// note marks optional fields.
func (w inputs) note(list []field) []field {
	for i, f := range list {
		if !f.Required && f.Options == nil {
			list[i].Note = w.Say("optional")
		}
	}
	return list
}

// choose returns a field with a list of values; prefix is the prefix of their
// sentences' keys.
func (w inputs) choose(name, prefix string, options []string, fallback string) field {
	f := w.field(name, "", "off")
	f.Value = cmp.Or(f.Value, fallback)
	for _, o := range options {
		label := o
		if prefix != "" {
			label = w.Say(prefix + o)
		} else if name == "installments" {
			label = o + "×"
		}
		f.Options = append(f.Options, choice{Value: o, Label: label, Chosen: o == f.Value})
	}
	return f
}

// URL is the page's address, without query.
func (p *page) URL() string { return httpapi.PagePath + url.PathEscape(p.Slug) }

// Waits reports whether the page changes by itself.
func (p *page) Waits() bool {
	return slices.Contains([]string{"pix", "voucher", "card", "challenge"}, p.State)
}

// Heading is the page's title: the state of the payment.
func (p *page) Heading() string {
	switch p.State {
	case "form":
		return p.Title
	case "returned":
		return p.Say("status." + p.Payment.Status)
	default:
		return p.Say(p.State + ".title")
	}
}

// Line formats a digitable line as on a printed boleto: 00190.50095
// 40144.816069 06809.350314 3 37370000000100.
func (p *paymentPage) Line() string {
	c := p.Code
	if len(c) != 47 {
		return c
	}
	return c[:5] + "." + c[5:10] + " " + c[10:15] + "." + c[15:21] + " " + c[21:26] + "." + c[26:32] + " " + c[32:33] + " " + c[33:]
}
