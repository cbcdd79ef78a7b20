package main

import (
	"fmt"
	"io"
	"time"

	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// firstOrder is the reference of the first request to try.
const firstOrder = "order-1001"

// welcome prints the addresses and a first request to try. With -log json it prints an
// object with the address and a key, so that standard output has only JSON too.
func welcome(out io.Writer, gw *mockserver.Server, base string, cfg config) {
	if cfg.log.form == "json" {
		cfg.log.object(out, note{Type: noteReady, Message: "The mock payment gateway is ready.", BaseURL: base, APIKey: gw.Key()})
		return
	}
	pages, clock, find, live := "", "", "", ""
	if cfg.dialect == "document" {
		live = "   (live gateways reject more: test with -dialect live too)"
	}
	if cfg.manual {
		clock = "\n  clock          " + gw.Clock.Now().Format(time.RFC3339) + "; it only moves by   curl " + base + `/__mock/clock/advance -d '{"by":"1d"}'`
	}
	if cfg.console {
		pages = "\n  console        " + base + "/   (for a browser: what happened, and what you can do)"
		find = "Find the order in the console: " + base + "/__mock/console/find?q=" + firstOrder + "\n"
	}
	_, _ = fmt.Fprintf(out, `The mock payment gateway is ready.

  base URL       %[1]s
  API key        %[2]s   (any other %[3]s… key opens its own account)
  dialect        %[6]s%[7]s%[4]s%[5]s
  API reference  %[1]s/__mock/openapi.json
  control plane  %[1]s/__mock/openapi-control.json   (pay, advance the clock, inject a fault)
  events         curl -N %[1]s/__mock/events

Test cards, by token (pgct_ is for one use, pgpm_ reusable; any text may follow):

`, base, gw.Key(), gw.Key()[:len("sk_test_")], pages, clock, cfg.dialect, live)
	for _, card := range engine.TestCards() {
		_, _ = fmt.Fprintf(out, "  %-20s  %s\n", card.Token, card.Outcome)
	}
	_, _ = fmt.Fprintf(out, `
Try it:

  curl -s%[3]s %[1]s/v2/transactions -H 'Authorization: Bearer %[2]s' \
    -H 'Content-Type: application/json' \
    -d '{"external_ref":"%[4]s","amount":1990,"method":"pix","products":[{"name":"Book","price":1990}],
      "buyer":{"name":"Ana","email":"ana@example.com","document":{"type":"CPF","number":"12345678909"}}}'

external_ref is your own name of the order: a second create with it gets 409 and charges
nothing.
%[5]sPress Ctrl-C to stop.
`, base, gw.Key(), cfg.tls.curl(), firstOrder, find)
}
