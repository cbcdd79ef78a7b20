package mockserver_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// The checkout page leads to its page in the console, of whichever account, if there is one.
func TestTheCheckoutPageLeadsToTheConsole(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"sk_test_mock", "sk_test_another"} {
		for _, console := range []bool{true, false} {
			gw := mockserver.Run(t, mockserver.WithConsole(console))
			link, err := gw.Account(key).Client().CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 4990})
			require.NoError(t, err)
			u, err := url.Parse(link.URL)
			require.NoError(t, err)
			b := browser{t, gw}
			page := b.get(u.Path)
			if !console {
				assert.NotContains(t, page.body, "console")
				continue
			}
			inOrder(t, page.text(), `href="/__mock/console`, "Open in the console")
			for _, found := range consoleLink.FindAllStringSubmatch(page.body, -1) {
				assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, found[1], nil).status, found[1])
			}
			assert.NotContains(t, page.body, "sk_test_another")
		}
	}
}

var consoleLink = regexp.MustCompile(`href="(/__mock/console[^"]*)"`)
