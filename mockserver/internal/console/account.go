package console

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// account takes the account from the beginning of a path, "~3f2a91bc/requests",
// and returns the rest. Keys are secrets and never part of an address: a hash
// stands for them. Without one, or with an unknown one, the default account is
// shown.
func (rq *request) account(path string) string {
	rq.key, rq.base = rq.cfg.Default, Prefix
	first, rest, _ := strings.Cut(path, "/")
	reference, found := strings.CutPrefix(first, "~")
	if !found {
		return path
	}
	for _, key := range rq.cfg.Store.Accounts() {
		if referenceOf(key) == reference && key != rq.cfg.Default {
			rq.key, rq.base = key, accountPath(key)
		}
	}
	return rest
}

func accountPath(key string) string { return Prefix + "/~" + url.PathEscape(referenceOf(key)) }

// referenceOf names an account in addresses.
func referenceOf(key string) string {
	sum := sha256.Sum256([]byte("account " + key))
	return hex.EncodeToString(sum[:6])
}

// masked shows enough of a key to recognise it. The mock's own default keys are
// no secret.
func masked(key string) string {
	if key == "sk_test_mock" || key == "sk_live_mock" {
		return key
	}
	for _, prefix := range [...]string{"sk_test_", "sk_live_"} {
		if name, found := strings.CutPrefix(key, prefix); found {
			return prefix + name[:min(4, len(name)/2)] + "…"
		}
	}
	return "…"
}
