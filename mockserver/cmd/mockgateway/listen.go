package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/events"
)

// listenTo is the command listen. The gateway itself sends the webhooks to the URL.
func listenTo(set *flag.FlagSet) action {
	to := set.String("forward-to", "", "`URL` that gets the webhooks of the account; http:// may be omitted")
	secret := set.String("secret", "", "`secret` that signs the webhooks; empty means a new one, which is printed")
	kinds := set.String("events", "", "comma-separated `kinds` or families to send, such as transaction.paid,payout.*; empty means all")
	return func(ctx context.Context, s *session, args []string) (err error) {
		target := *to
		if len(args) > 0 {
			return wrongUsage("unexpected argument %q", args[0])
		}
		if target == "" {
			return wrongUsage("-forward-to is needed, as in -forward-to localhost:3000/webhooks")
		}
		if !strings.Contains(target, "://") {
			target = "http://" + target
		}
		if err := deliver.CheckURL(target); err != nil {
			return wrongUsage("-forward-to: %v", err)
		}
		if *secret == "" {
			*secret = "whsec_" + strings.ToLower(rand.Text())
		}
		if err := deliver.CheckSecret(gateway.NewSecret(*secret)); err != nil {
			return wrongUsage("-secret: %v", err)
		}
		stream, err := s.events(ctx, events.TypeDelivery) // before the endpoint gets its first event
		if err != nil {
			return err
		}
		endpoint, raw, err := admin.Call[admin.EndpointView](ctx, s.Client, http.MethodPost, "endpoints",
			admin.EndpointBody{URL: target, Secret: *secret, Events: names(*kinds)})
		if err != nil {
			return errors.Join(err, stream.body.Body.Close())
		}
		defer func() { err = errors.Join(err, s.forget(ctx, endpoint.ID)) }()
		if err := s.print(raw, "Ready: %s gets the webhooks, signed with %s. Press Ctrl-C to stop.", target, *secret); err != nil {
			return err
		}
		return stream.each(ctx, func(e mockserver.Event) error {
			if e.Delivery == nil || e.Delivery.Endpoint != endpoint.ID {
				return nil
			}
			return s.show(e)
		})
	}
}

// forget removes an endpoint, also when the command is being stopped.
func (s *session) forget(ctx context.Context, id string) error {
	const limit = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	_, _, err := admin.Call[admin.EndpointView](ctx, s.Client, http.MethodDelete, "endpoints/"+url.PathEscape(id), nil)
	if errors.Is(err, admin.ErrNoGateway) {
		return nil // the stream has reported it
	}
	return err
}
