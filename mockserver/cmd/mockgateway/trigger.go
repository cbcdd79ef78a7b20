package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/control"
	"github.com/gateway-go/gateway/mockserver/internal/core"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/webhook"
)

// story is how a transaction comes to an event.
type story struct {
	method  gateway.Method
	control []string
	refund  bool
}

// stories are the events that -real can cause.
func stories() map[webhook.Kind]story {
	return map[webhook.Kind]story{
		webhook.TransactionCreated:     {method: gateway.Pix},
		webhook.TransactionPending:     {method: gateway.Pix},
		webhook.TransactionPaid:        {method: gateway.Pix, control: []string{"transactions/pay"}},
		webhook.TransactionCancelled:   {method: gateway.Pix, control: []string{"transactions/cancel"}},
		webhook.TransactionRefunded:    {method: gateway.Pix, control: []string{"transactions/pay"}, refund: true},
		webhook.TransactionChargedback: {method: gateway.CreditCard, control: []string{"transactions/pay", "transactions/chargeback"}},
	}
}

// trigger is the command trigger.
func trigger(set *flag.FlagSet) action {
	real := set.Bool("real", false, "create a transaction and let the event happen to it, so that your program can read it")
	return func(ctx context.Context, s *session, args []string) error {
		if len(args) != 1 {
			return wrongUsage("one kind of event is needed, such as transaction.paid")
		}
		kind := webhook.Kind(args[0])
		if !slices.Contains(webhook.DocumentedKinds(), kind) {
			return wrongUsage("there is no kind of event %q; use one of %s", args[0], strings.Join(texts(webhook.DocumentedKinds()), ", "))
		}
		if !*real {
			return s.sent(ctx, kind, "deliveries/sample", admin.SampleBody{Kind: args[0]})
		}
		plot, ok := stories()[kind]
		if !ok {
			return wrongUsage("-real can cause only %s; without -real a sample is sent", strings.Join(texts(slices.Sorted(maps.Keys(stories()))), ", "))
		}
		id, err := s.play(ctx, plot)
		if err != nil {
			return err
		}
		return s.sent(ctx, kind, "deliveries/wait?kind="+url.QueryEscape(args[0])+"&resource_id="+url.QueryEscape(id), nil)
	}
}

// sent shows the deliveries of an event. An event that no endpoint accepted is an error.
func (s *session) sent(ctx context.Context, kind webhook.Kind, path string, body any) error {
	list, raw, err := admin.Call[[]admin.DeliveryView](ctx, s.Client, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	if s.json {
		if err := s.print(raw, ""); err != nil {
			return err
		}
	}
	accepted, received := true, false
	for _, d := range list {
		if !s.json {
			if err := s.print(nil, "%s %s about %s: %s", d.Kind, d.EventID, d.ResourceID, outcome(d)); err != nil {
				return err
			}
		}
		received = received || d.Status != string(deliver.NoEndpoint)
		accepted = accepted && d.Status == string(deliver.Delivered)
	}
	switch {
	case !received:
		return fmt.Errorf("no endpoint receives %s: register one, as with mockgateway listen -forward-to URL", kind)
	case !accepted:
		return fmt.Errorf("not every endpoint has accepted %s", kind)
	}
	return nil
}

// outcome describes a delivery.
func outcome(d admin.DeliveryView) string {
	if d.Status == string(deliver.NoEndpoint) {
		return "no endpoint"
	}
	text := d.Status + " to " + plain(d.URL)
	if len(d.Attempts) == 0 {
		return text
	}
	last := d.Attempts[len(d.Attempts)-1]
	if last.ResponseStatus != 0 {
		return fmt.Sprintf("%s, which returned %d", text, last.ResponseStatus)
	}
	return text + ": " + plain(last.Error)
}

// play creates a transaction and takes it through a story. It returns the id.
func (s *session) play(ctx context.Context, plot story) (id string, err error) {
	health, _, err := admin.Call[admin.HealthView](ctx, s.Client, http.MethodGet, "health", nil)
	if err != nil {
		return "", err
	}
	key := s.Key
	if key == "" {
		key = (&core.Config{Production: health.Environment != "sandbox"}).Key()
	}
	client, err := gateway.New(s.Base, gateway.BearerToken(key), gateway.WithInsecureHTTP(),
		gateway.WithHTTPClient(&http.Client{Transport: s.Transport}))
	if err != nil {
		return "", err
	}
	reference, err := uuid.NewRandom()
	if err != nil {
		return "", err
	}
	params := gateway.TransactionParams{
		ExternalRef: "trigger-" + reference.String(), Amount: 1990, Method: plot.method,
		Buyer:    gateway.BuyerParams{Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
		Products: []gateway.Product{{Name: "Book", Price: 1990}},
	}
	if plot.method == gateway.CreditCard {
		params.Token = gateway.CardToken("pgct_ok_" + reference.String())
	}
	made, err := client.Transactions.Create(ctx, params)
	if err != nil {
		return "", err
	}
	for _, name := range plot.control {
		path := strings.Replace(control.Named(name).Path(), "{id}", url.PathEscape(made.ID), 1)
		if _, _, err := admin.Call[changed](ctx, s.Client, http.MethodPost, path, nil); err != nil {
			return "", err
		}
	}
	if plot.refund {
		_, err = client.Transactions.Refund(ctx, made.ID, gateway.RefundParams{Full: true})
	}
	return made.ID, err
}
