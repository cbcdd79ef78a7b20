package console

import (
	"net/url"
	"strings"

	"github.com/gateway-go/gateway/internal/truncate"
	"github.com/gateway-go/gateway/mockserver/internal/core"
)

// account reads the account at the beginning of a path, "~acct_3f2a91bc/requests", and
// returns the rest. Keys are secrets and never part of an address: accounts have the
// same names as in events. Without one, or with an unknown one, the default account is
// shown.
func (rq *request) account(path string) string {
	rq.key, rq.base = rq.core.Key(), Prefix
	first, rest, _ := strings.Cut(path, "/")
	reference, found := strings.CutPrefix(first, "~")
	if !found {
		return path
	}
	for _, key := range rq.core.Store.Accounts() {
		if key != rq.core.Key() && rq.core.Events.Name(key) == reference {
			rq.key, rq.base = key, rq.accountPath(key)
		}
	}
	return rest
}

// accountPath returns the path of an account's pages.
func (c *Console) accountPath(key string) string { return Path(c.core, key) }

// Path returns the path of the pages about the account of a key.
func Path(c *core.Core, key string) string {
	if key == c.Key() {
		return Prefix
	}
	return Prefix + "/~" + url.PathEscape(c.Events.Name(key))
}

// masked shows enough of a key to recognize it. The mock's own default keys are
// not secret.
func masked(key string) string {
	if key == "sk_test_mock" || key == "sk_live_mock" {
		return key
	}
	for _, prefix := range [...]string{"sk_test_", "sk_live_"} {
		if name, found := strings.CutPrefix(key, prefix); found {
			return prefix + truncate.Text(name, min(4, len(name)/2)) + "…"
		}
	}
	return "…"
}
