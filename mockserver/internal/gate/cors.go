package gate

import (
	"errors"
	"net/http"
	"slices"
)

// CheckOrigins validates a list of origins for [CORS]. "*" is every origin.
func CheckOrigins(origins []string) error {
	for _, origin := range origins {
		if origin == "*" {
			continue
		}
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil {
			return errors.New("an origin is a scheme and a host, such as http://localhost:5173, or *")
		}
	}
	return nil
}

// CORS returns a handler that lets scripts of pages of the given origins read the responses
// of next, and send any method and header. Credentials are keys in headers, not cookies.
func CORS(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin == "" || !slices.Contains(origins, origin) && !slices.Contains(origins, "*") {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if method := r.Header.Get("Access-Control-Request-Method"); method != "" && r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", method)
			if names := r.Header.Get("Access-Control-Request-Headers"); names != "" {
				h.Set("Access-Control-Allow-Headers", names)
			}
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.Set("Access-Control-Expose-Headers", "*")
		next.ServeHTTP(w, r)
	})
}
