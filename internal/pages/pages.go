// Package pages lists error pages of load balancers, firewalls and other proxies,
// for tests. None of them says anything about a resource.
package pages

// Page is a response that is not the gateway's.
type Page struct {
	Name        string
	ContentType string
	Body        string
}

// All returns pages that load balancers, firewalls and other proxies send with the
// statuses 400 to 429.
func All() []Page {
	const (
		html  = "text/html; charset=utf-8"
		plain = "text/plain; charset=utf-8"
		json  = "application/json"
	)
	return []Page{
		{"empty", "", ""},
		{"empty JSON", json, ""},
		{"ingress", plain, "default backend - 404"},
		{"ingress, HTML", html, "<html><head><title>404 Not Found</title></head><body><center><h1>404 Not Found</h1></center><hr><center>nginx</center></body></html>"},
		{"ingress, called JSON", json, "default backend - 404"},
		{"Traefik and Go", plain, "404 page not found\n"},
		{"Cloudflare", html, "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head><body>error code: 1020</body></html>"},
		{"Cloudflare, text", plain, "error code: 1003"},
		{"Kong", json, `{"message":"no Route matched with those values","request_id":"3f1c5d2e"}`},
		{"AWS API Gateway", json, `{"message":"Forbidden"}`},
		{"AWS API Gateway, token", json, `{"message":"Missing Authentication Token"}`},
		{"AWS load balancer", html, "<html><head><title>403 Forbidden</title></head><body><center><h1>403 Forbidden</h1></center></body></html>"},
		{"AWS S3", "application/xml", `<?xml version="1.0" encoding="UTF-8"?><Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>`},
		{"Envoy", plain, "no healthy upstream"},
		{"an empty object", json, "{}"},
		{"a list", json, "[]"},
		{"null", json, "null"},
		{"a string", json, `"not found"`},
		{"a problem of nulls", json, `{"title":null}`},
	}
}
