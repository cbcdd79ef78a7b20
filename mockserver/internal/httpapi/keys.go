package httpapi

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Keys are the API keys that were revoked or replaced. An account is identified by its
// first key for good. The zero Keys is ready to use.
type Keys struct {
	mu      sync.RWMutex
	revoked map[string]bool   // keys, not accounts
	account map[string]string // the accounts of the keys that replace others
}

// Account returns the account of a key.
func (k *Keys) Account(key string) string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if account, replaces := k.account[key]; replaces {
		return account
	}
	return key
}

// Revoked reports whether a key was revoked.
func (k *Keys) Revoked(key string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.revoked[key]
}

// Revoke revokes every key that an account has.
func (k *Keys) Revoke(account string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.revoked == nil {
		k.revoked = map[string]bool{}
	}
	k.revoked[account] = true
	for key, of := range k.account {
		if of == account {
			k.revoked[key] = true
		}
	}
}

// Restore makes the revoked keys of an account valid again.
func (k *Keys) Restore(account string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.revoked, account)
	for key, of := range k.account {
		if of == account {
			delete(k.revoked, key)
		}
	}
}

// Forget restores the first key of an account and removes the others.
func (k *Keys) Forget(account string) {
	k.Restore(account)
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, of := range k.account {
		if of == account {
			delete(k.account, key)
		}
	}
}

// replace gives an account one more key.
func (k *Keys) replace(account, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.account == nil {
		k.account = map[string]string{}
	}
	k.account[key] = account
}

// ReplaceKey gives an account a new key, which must be valid in this environment and
// unused. The keys that it has stay as they are, so revoke them before.
func (a *API) ReplaceKey(account, key string) error {
	if p := a.admit(key); p != nil {
		return fmt.Errorf("key: %s", p.detail)
	}
	if slices.Contains(a.cfg.Store.Accounts(), key) || a.cfg.Keys.Account(key) != key {
		return errKeyUsed
	}
	a.cfg.Keys.replace(account, key)
	return nil
}

var errKeyUsed = errors.New("key: it is the key of an account: use a new one")
