package gatewayprobe

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// transferExperiments test the rows of "Transfers and balance".
func transferExperiments() map[string]experiment {
	return map[string]experiment{
		"transfer-required": {does: "creates transfers, each without one of three members", check: func(t *trial) {
			for _, name := range []string{"pix_key_type", "pix_key_value", "amount"} {
				t.rejects(t.transfer(t.payout(name, absent{})), name, "without "+name)
			}
		}},
		"pix-key-forms": {does: "creates transfers to valid and invalid Pix keys", check: func(t *trial) {
			for _, row := range []struct {
				kind, key string
				good      bool
			}{
				{"CPF", "52998224725", true},
				{"CPF", "529.982.247-25", true},
				{"CPF", "52998224726", false},
				{"CPF", "11111111111", false},
				{"CNPJ", "11222333000181", true},
				{"CNPJ", "11.222.333/0001-81", true},
				{"CNPJ", "11222333000182", false},
				{"CNPJ", "12ABC34501DE35", true},
				{"CNPJ", "12.ABC.345/01DE-35", true},
				{"CNPJ", "12ABC34501DE36", false},
				{"PHONE", "+5511987654321", true},
				{"PHONE", "11987654321", true},
				{"PHONE", "ask reception", false},
				{"EVP", t.uuid(), true},
				{"EVP", "1234", false},
			} {
				r := t.transfer(t.payout("pix_key_type", row.kind, "pix_key_value", row.key))
				what := "a " + row.kind + " written " + shape(row.key)
				if row.good {
					t.accepts(r, what)
				} else {
					t.rejects(r, "pix_key_value", what)
				}
			}
		}},
		"transfer-maximum": {does: "creates a transfer and a v1 payment of 9007199254740992 cents", check: func(t *trial) {
			const much int64 = 9007199254740992
			t.rejects(t.transfer(t.payout("amount", much)), "amount", "a transfer above the maximum")
			t.rejects(t.v1(http.MethodPost, v1Payment, t.payment("transaction.value", much)), "transaction.value", "a v1 payment above the maximum")
		}},
		"transfer-status-filter": {does: "lists transfers, subscriptions and transactions in two states at once", check: func(t *trial) {
			t.rejects(t.get(transfers+"?limit=1&status=paid,pending"), "status", "two states of transfers")
			t.rejects(t.get(subscriptions+"?limit=1&status=active,canceled"), "status", "two states of subscriptions")
			t.accepts(t.get(transactions+"?limit=1&status=paid,pending"), "two states of transactions")
		}},
		"transfer-fee": {does: "creates and cancels a transfer, and checks its fee and the balance", check: func(t *trial) {
			before := t.balance()
			r := t.setup(t.transfer(t.payout("amount", 1500)))
			t.want(r.int("data.fee") == 50, "the fee is %v", r.at("data.fee"))
			left := before - t.balance()
			t.want(left == 1500, "a transfer of 1500 takes %d from the balance", left)
			t.setup(t.post(transfers+"/"+t.id(r)+"/cancel", object{}))
			back := t.balance()
			t.want(back == before, "a cancelled transfer leaves the balance changed by %d", back-before)
		}},
		"transfer-balance": {does: "creates a transfer of more than the balance", check: func(t *trial) {
			balance := t.balance()
			if balance > 100_000_000 {
				t.cannotTell("the balance is too large to go below it")
			}
			t.accepts(t.transfer(t.payout("amount", max(balance, 0)+1000)), "a transfer of more than the balance")
			now := t.balance()
			t.want(now < 0, "the balance is not negative after it")
		}},
		"balance-currency": {does: "pays a transaction in USD and compares the balance before and after", check: func(t *trial) {
			before := t.balance()
			path, _ := t.make(t.charge("currency", "USD"))
			t.set(path, "paid")
			net := t.setup(t.get(path)).int("data.fee.net_amount")
			got := t.balance() - before
			t.want(got == net, "1000 in USD change the balance by %d", got)
			currency := t.v1(http.MethodGet, "/v1/account/balance", nil).text("currency")
			t.want(currency == "BRL", "the balance is in %s", currency)
		}},
		"cancel-reason": {does: "cancels a transfer with a reason", check: func(t *trial) {
			path := transfers + "/" + t.id(t.setup(t.transfer(t.payout())))
			t.accepts(t.post(path+"/cancel", object{"reason": "gatewayprobe"}), "a reason")
			t.want(!strings.Contains(string(t.setup(t.get(path)).body), "gatewayprobe"), "the transfer shows the reason")
		}},
	}
}

// customerExperiments test the rows of "Customers".
func customerExperiments() map[string]experiment {
	return map[string]experiment{
		"customer-reference": {does: "creates customers with the same externalRef, and with the same e-mail", check: func(t *trial) {
			body := t.person("externalRef", t.ref())
			t.setup(t.post(customers, body))
			t.accepts(t.post(customers, t.person("email", body["email"])), "an e-mail that another customer has")
			t.status(t.post(customers, t.person("externalRef", body["externalRef"])), http.StatusConflict, "an externalRef that another customer has")
		}},
		"customer-status": {does: "creates a customer with an ip_address and reads it", check: func(t *trial) {
			r := t.setup(t.get(customers + "/" + t.customer("ip_address", "203.0.113.7")))
			t.want(r.text("data.status") == "active", "status is %v", r.at("data.status"))
			t.want(r.text("data.ip_address") == "203.0.113.7", "ip_address is %v", r.at("data.ip_address"))
		}},
		"customer-record": {does: "creates customers with and without document, and checks their keys", check: func(t *trial) {
			keys := []string{"id", "name", "email", "phone", "externalRef", "status"}
			bare, _ := t.setup(t.post(customers, t.person())).at("data").(object)
			t.want(has(bare, keys...) && len(bare) == len(keys), "a customer without document, address and ip_address has the keys %s", names(bare))
			body := t.person("ip_address", "203.0.113.7", "document", object{"type": "CPF", "number": "52998224725"},
				"address", object{"street": "Rua das Flores", "city": "Recife", "zipCode": "50000000"})
			full, _ := t.setup(t.post(customers, body)).at("data").(object)
			t.want(has(full, append(keys, "document", "address", "ip_address")...) && len(full) == len(keys)+3, "a customer with document, address and ip_address has the keys %s", names(full))
		}},
		"customer-filters": {does: "finds one customer by each filter of the list", check: func(t *trial) {
			phone, document := fmt.Sprintf("119%08d", t.number()%100_000_000), fmt.Sprintf("%011d", t.number()%100_000_000_000)
			body := t.person("phone", phone, "externalRef", t.ref(), "ip_address", "203.0.113.8", "document", object{"type": "CPF", "number": document})
			id := t.id(t.setup(t.post(customers, body)))
			email, _ := body["email"].(string)
			for name, value := range map[string]string{
				"search": email, "document_number": document, "email": email, "phone": phone,
				"external_ref": fmt.Sprint(body["externalRef"]), "status": "active", "ip_address": "203.0.113.8",
			} {
				other := "&email=" + url.QueryEscape(email) // the account may have other customers
				if name == "email" {
					other = ""
				}
				query := customers + "?limit=20&" + name + "="
				t.want(slices.Contains(t.accepts(t.get(query+url.QueryEscape(value)+other), name).ids(), id), "%s does not find the customer", name)
				wrong := t.get(query + "gatewayprobe-none" + other)
				t.want(!slices.Contains(wrong.ids(), id), "%s finds the customer by another value too", name)
			}
		}},
	}
}

// names lists an object's members.
func names(in object) string { return strings.Join(slices.Sorted(maps.Keys(in)), ", ") }
