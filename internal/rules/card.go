package rules

import "strings"

// HasTokenPrefix reports whether s starts like a payment token of the
// client-side payment element.
func HasTokenPrefix(s string) bool {
	return IsSingleUse(s) || strings.HasPrefix(s, "pgpm_")
}

// IsSingleUse reports whether a token pays once; the other kind is reusable.
func IsSingleUse(token string) bool { return strings.HasPrefix(token, "pgct_") }

const noCardData = "card data must never be sent: send the token that the client-side payment element made"

// LooksLikeCard reports whether the whole of s, spaces and dashes aside, is
// what a card number looks like: 13 to 19 digits that start with 2 to 6 and
// pass the Luhn check. Substrings do not count: one random reference in 140
// holds 13 digits that pass.
func LooksLikeCard(s string) bool {
	digits := make([]byte, 0, 19)
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9' && len(digits) < 19:
			digits = append(digits, c-'0')
		case c == ' ' || c == '-':
		default:
			return false
		}
	}
	if len(digits) < 13 || digits[0] < 2 || digits[0] > 6 {
		return false
	}
	sum := 0
	for i, d := range digits {
		n := int(d)
		if (len(digits)-i)%2 == 0 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// cardData reports every member, at any depth, that is named like card data or
// whose value is a card number. References, SKUs, phones, documents, Pix keys
// and ids are left out: they hold long numbers by nature.
func (c *checker) cardData() {
	if !c.doc.query {
		c.scan(&Object{c: c, index: -1})
	}
}

func (c *checker) scan(o *Object) {
	nodes := c.doc.nodes
	for i := o.at + 1; i < nodes[o.at].end; i = nodes[i].end {
		c.scanMember(o, nodes[i].name, -1, i)
	}
}

func (c *checker) scanMember(o *Object, name string, index, at int) {
	nodes := c.doc.nodes
	n := nodes[at]
	if n.kind == '[' {
		for j, e := 0, at+1; e < n.end; j, e = j+1, nodes[e].end {
			c.scanMember(o, name, j, e)
		}
		return
	}
	child := &Object{c: c, parent: o, name: name, index: index, at: at}
	switch {
	case n.kind != 'n' && cardName(name), n.kind == '{' && name == "card",
		(n.kind == '"' || n.kind == '0') && !longNumber(name) && c.isCard(n):
		child.Fail("", CodeInvalid, noCardData)
	case n.kind == '{':
		c.scan(child)
	}
}

func (c *checker) isCard(n node) bool {
	if len(n.raw) < 13 || len(n.raw) > 64 {
		return false
	}
	if n.kind == '0' {
		return LooksLikeCard(string(n.raw))
	}
	return LooksLikeCard(c.doc.text(n.raw))
}

func cardName(name string) bool {
	switch name {
	case "card_number", "cardNumber", "pan", "cvv", "cvc", "security_code":
		return true
	}
	return false
}

func longNumber(name string) bool {
	switch name {
	case "external_ref", "externalRef", "externalId", "external_id", "idempotency_key", "sku", "phone", "number", "document",
		"pix_key_value", "pixKey", "id", "customer_id", "token", "tracking_code":
		return true
	}
	return false
}
