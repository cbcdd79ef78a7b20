package mockserver

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/seed"
)

// controlPlane returns the handler of the paths under /__mock.
func (s *Server) controlPlane(api *httpapi.API) *admin.Plane {
	return admin.New(admin.Config{
		Origins:      s.settings.origins,
		Store:        s.store,
		Memory:       s.memory,
		Clock:        s.clock,
		Sender:       s.sender,
		Faults:       s.faults,
		Journal:      s.journal,
		Events:       s.events,
		API:          api,
		Authenticate: api.Authenticate,
		Default:      s.Key(),
		Controls:     slices.Sorted(maps.Keys(controls(s.Account(""), admin.Argument{}))),
		Control: func(key, control, id string, arg admin.Argument) error {
			return refusalOf(controls(s.Account(key), arg)[control](id))
		},
		SetLegacyStatus: func(key, id, status string) error { return refusalOf(s.Account(key).Legacy.SetStatus(id, status)) },
		Down:            s.setDown,
		Moved:           s.data.moved,
		Snapshot:        s.Snapshot,
		Restore:         func(b []byte) error { return snapshotRefused(s.Restore(b)) },
		Seeded:          s.Seeded,
		Seed: func(key string, file []byte) (map[string]string, error) {
			ids, err := s.seed("", file, key)
			return ids, seedRefused(err)
		},
		Headers: s.settings.headers,
		Sandbox: s.settings.environment == Sandbox,
		Dialect: s.settings.dialect,
	})
}

// controls are the actions of the control plane on the resources of an account;
// arg is the call's argument.
func controls(a *Account, arg admin.Argument) map[string]func(id string) error {
	return map[string]func(id string) error{
		"transactions/pay":             a.Transactions.Pay,
		"transactions/expire":          a.Transactions.Expire,
		"transactions/refuse":          a.Transactions.Refuse,
		"transactions/cancel":          a.Transactions.Cancel,
		"transactions/chargeback":      a.Transactions.Chargeback,
		"transactions/settle-for":      func(id string) error { return a.Transactions.SettleFor(id, arg.Amount) },
		"transactions/challenge/pass":  a.Transactions.PassChallenge,
		"transactions/challenge/fail":  a.Transactions.FailChallenge,
		"transactions/dispute/open":    a.Transactions.OpenDispute,
		"transactions/dispute/contest": a.Transactions.ContestDispute,
		"transactions/dispute/lose":    a.Transactions.LoseDispute,
		"transactions/dispute/win":     a.Transactions.WinDispute,
		"transfers/analyse":            a.Transfers.Analyse,
		"transfers/process":            a.Transfers.Process,
		"transfers/settle":             a.Transfers.Settle,
		"transfers/fail":               a.Transfers.Fail,
		"subscriptions/authorize":      a.Subscriptions.Authorize,
		"subscriptions/reject":         a.Subscriptions.Reject,
		"subscriptions/revoke":         a.Subscriptions.Revoke,
		"subscriptions/cancel-debit":   a.Subscriptions.CancelDebit,
		"subscriptions/fail-next":      func(id string) error { return a.Subscriptions.FailNextCharges(id, arg.Count) },
		"checkout/begin":               a.Checkout.Begin,
		"checkout/pay":                 a.Checkout.Pay,
		"checkout/expire":              a.Checkout.Expire,
		"checkout/deactivate":          a.Checkout.Deactivate,
	}
}

// refusalOf maps a control's error to the control plane's.
func refusalOf(err error) error {
	if refused, ok := errors.AsType[*ControlError](err); ok {
		return &admin.RefusedError{Status: refused.Status, Code: refused.Code, Detail: refused.Detail}
	}
	return err
}

// snapshotRefused maps the error of a file that can't be restored to the control
// plane's.
func snapshotRefused(err error) error {
	if errors.Is(err, ErrSnapshot) {
		return &admin.RefusedError{Status: http.StatusBadRequest, Code: "SNAPSHOT_REJECTED", Detail: strings.TrimPrefix(err.Error(), "mockserver: ")}
	}
	return err
}

// seedRefused is snapshotRefused for a seed file.
func seedRefused(err error) error {
	var faults seed.Errors
	switch {
	case errors.As(err, &faults):
		return &admin.RefusedError{Status: http.StatusBadRequest, Code: "VALIDATION_ERROR", Detail: faults.Error()}
	case errors.Is(err, errSeedRace):
		return &admin.RefusedError{Status: http.StatusConflict, Code: "CONFLICT", Detail: err.Error()}
	default:
		return snapshotRefused(err)
	}
}
