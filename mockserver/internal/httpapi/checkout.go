package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/gate"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

func (a *API) checkoutRoutes() []route {
	return []route{
		{
			Operation: spec.CheckoutLinks.Create, status: 201,
			plain: []int{http.StatusUnprocessableEntity, http.StatusInternalServerError},
			do:    withBody(a.createLink), data: linkURL{},
		},
		{
			Operation: spec.CheckoutSessions.Open, status: 200,
			do: plainly(a.openSession), data: sessionView{}, refusals: []string{engine.CodeNotFound, engine.CodeCheckoutGone},
		},
		{
			Operation: spec.CheckoutSessions.Update, status: 200,
			do: withBody(a.updateSession), data: sessionState{}, refusals: []string{
				engine.CodeNotFound, engine.CodeCheckoutGone, engine.CodeSessionToken, engine.CodeInvalidState,
			},
		},
		{Operation: spec.HostedCheckout.Open, status: 201, liveOnly: true, optional: true, do: withBody(a.openHosted)},
		{Operation: spec.HostedCheckout.Pay, status: 200, liveOnly: true, do: withBody(a.payHosted)},
	}
}

// SessionHeader is the header that carries a checkout session's token.
const SessionHeader = "X-Checkout-Session-Token"

// PagePath is the path prefix of hosted checkout pages: a link's data.url ends
// with it and the slug.
const PagePath = "/pay/"

// linkBody is the body of a link's creation. The interface document
// has the members below Products in responses only. The mock accepts them here
// too, so that a test can put a link into any state.
type linkBody struct {
	Amount   int64         `json:"amount"`
	Currency string        `json:"currency"`
	Title    string        `json:"title"`
	Products []linkProduct `json:"products"`

	Description    string         `json:"description"`
	ExpiresAt      time.Time      `json:"expires_at"`
	MaxUses        int            `json:"max_uses"`
	SuccessURL     string         `json:"success_url"`
	CancelURL      string         `json:"cancel_url"`
	PaymentMethods []string       `json:"payment_methods"`
	Metadata       jsontext.Value `json:"metadata"`
}

type linkProduct struct {
	ExternalID   string         `json:"external_id"`
	Name         string         `json:"name"`
	Price        int64          `json:"price"`
	Quantity     int            `json:"quantity"`
	Description  string         `json:"description"`
	ImageURL     string         `json:"image_url"`
	ComparePrice int64          `json:"compare_price"`
	Type         string         `json:"type"`
	Currency     string         `json:"currency"`
	Metadata     jsontext.Value `json:"metadata"`
}

// linkURL is the data of the response to a link's creation.
type linkURL struct {
	URL string `json:"url"`
}

func (a *API) createLink(rq *request, in *linkBody) (any, *engine.Refusal) {
	n := newLink(in)
	c, refusal := rq.account.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		return engine.CreateLink(d.Env, n, engine.ExistingForLink{
			Links: d.Links.Len(), Products: d.Products.Len(), Product: d.Products.ByRef,
		})
	})
	if refusal != nil {
		return nil, refusal
	}
	return linkURL{a.baseURL(rq.r) + PagePath + c.Links[0].Slug}, nil
}

// baseURL returns the server's address for buyers: the configured one, that of a proxy in
// front of it if its host name is allowed, or that which the client used.
func (a *API) baseURL(r *http.Request) string {
	if a.cfg.PublicURL != "" {
		return strings.TrimSuffix(a.cfg.PublicURL, "/")
	}
	scheme, host := "http", r.Host
	proto, forwarded := forwardedBy(r.Header)
	if r.TLS != nil || proto == "https" {
		scheme = "https"
	}
	if forwarded != "" && !strings.ContainsAny(forwarded, `/\?#@"<> `) && gate.Allowed(forwarded, a.cfg.Hosts) {
		host = forwarded
	}
	return scheme + "://" + host
}

// forwardedBy returns the scheme and the host that a proxy says the client used: in
// Forwarded (RFC 7239), whose first element is that of the proxy next to the client, or
// in the X-Forwarded headers.
func forwardedBy(h http.Header) (proto, host string) {
	proto, host = h.Get("X-Forwarded-Proto"), h.Get("X-Forwarded-Host")
	first, _, _ := strings.Cut(h.Get("Forwarded"), ",")
	for pair := range strings.SplitSeq(first, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "proto":
			proto = strings.ToLower(value)
		case "host":
			host = value
		}
	}
	return proto, host
}

func newLink(in *linkBody) engine.NewLink {
	n := engine.NewLink{Link: engine.Link{
		Title:          in.Title,
		Description:    in.Description,
		Currency:       in.Currency,
		Amount:         in.Amount,
		MaxUses:        in.MaxUses,
		ExpiresAt:      in.ExpiresAt.UTC().Truncate(time.Millisecond),
		SuccessURL:     in.SuccessURL,
		CancelURL:      in.CancelURL,
		PaymentMethods: in.PaymentMethods,
		Metadata:       compact(in.Metadata),
	}}
	for _, p := range in.Products {
		n.Sold = append(n.Sold, engine.NewLinkItem{
			CatalogProduct: engine.CatalogProduct{
				ExternalID:   p.ExternalID,
				Name:         p.Name,
				Description:  p.Description,
				Type:         p.Type,
				Currency:     p.Currency,
				Price:        p.Price,
				ComparePrice: p.ComparePrice,
				ImageURL:     p.ImageURL,
				Metadata:     compact(p.Metadata),
			},
			Quantity: p.Quantity,
		})
	}
	return n
}

// openSession resumes the session in the header, or opens a new one.
func (a *API) openSession(rq *request) (any, *engine.Refusal) {
	var view sessionView
	_, refusal := rq.account.Link(rq.param, func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
		s := d.Sessions.ByRef(rq.r.Header.Get(SessionHeader))
		c, refusal := engine.OpenSession(d.Env, l, s)
		switch {
		case refusal != nil:
			return c, refusal
		case len(c.Sessions) > 0:
			view = viewSession(l, c.Sessions[0], d.Catalog())
		default:
			view = viewSession(l, s, d.Catalog())
			view.Resumed = true
		}
		return c, nil
	})
	if refusal != nil {
		return nil, refusal
	}
	return view, nil
}

type sessionBody struct {
	Buyer  *sessionBuyer `json:"buyer"`
	Method string        `json:"payment_method"`
}

// sessionBuyer updates a session's buyer: an absent member is unchanged, null
// clears it.
type sessionBuyer struct {
	Name      gateway.Opt[string]           `json:"name"`
	Email     gateway.Opt[string]           `json:"email"`
	Phone     gateway.Opt[string]           `json:"phone"`
	BirthDate gateway.Opt[string]           `json:"birth_date"`
	Document  gateway.Opt[gateway.Document] `json:"document"`
	Address   gateway.Opt[gateway.Address]  `json:"address"`
}

func (b *sessionBuyer) fill(to *engine.Buyer) {
	set(&to.Name, b.Name)
	set(&to.Email, b.Email)
	set(&to.Phone, b.Phone)
	set(&to.BirthDate, b.BirthDate)
	if !b.Document.IsZero() {
		to.Document = nil
		if d, ok := b.Document.Get(); ok {
			to.Document = documentFrom(&d)
		}
	}
	if !b.Address.IsZero() {
		to.Address = nil
		if address, ok := b.Address.Get(); ok {
			to.Address = addressFrom(&address)
		}
	}
}

// set sets a member if it was sent; null clears it.
func set(to *string, o gateway.Opt[string]) {
	if v := textOf(o); v != nil {
		*to = *v
	}
}

func (in *sessionBody) update() engine.SessionUpdate {
	update := engine.SessionUpdate{Method: in.Method}
	if in.Buyer != nil {
		update.Buyer = in.Buyer.fill
	}
	return update
}

func (a *API) updateSession(rq *request, in *sessionBody) (any, *engine.Refusal) {
	c, refusal := rq.account.Link(rq.param, func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
		return engine.UpdateSession(d.Env, l, d.Sessions.ByRef(rq.r.Header.Get(SessionHeader)), in.update())
	})
	if refusal != nil {
		return nil, refusal
	}
	s := c.Sessions[0]
	return sessionState{
		ExpiresAt:  stamp(s.ExpiresAt),
		Status:     s.Status,
		UpdatedAt:  stamp(s.UpdatedAt),
		Selected:   nullable(&s.Method),
		SelectedAt: stamp(s.MethodAt),
	}, nil
}
