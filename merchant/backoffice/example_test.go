package backoffice_test

import (
	"database/sql"
	"net/http"

	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/merchant/backoffice"
)

// requireLogin and staff stand for the login that your back office has.
func requireLogin(next http.Handler) http.Handler { return next }

type person struct {
	Name   string
	OnCall bool
}

func staff(*http.Request) person { return person{Name: "Rui", OnCall: true} }

func Example() {
	mount := func(mux *http.ServeMux, m *merchant.Merchant[*sql.Tx]) error {
		page, err := backoffice.New(m, backoffice.Config{Actor: func(r *http.Request) (string, bool) {
			who := staff(r)
			return who.Name, who.OnCall // everyone else may look
		}})
		if err != nil {
			return err
		}
		mux.Handle("/admin/payments/", requireLogin(page))
		return nil
	}
	_ = mount
}
