package webhook

import (
	"crypto/subtle"
	"iter"
	"net/http"
	"strings"
)

// intake reads what strangers send: it limits it, and verifies signatures.
//
// Deliveries with and without a signature have separate capacities: anyone who knows
// the receiver's URL can fill the one for those without.
type intake struct {
	cfg              *Config
	verifier         *Verifier
	signed, unsigned capacity
}

// capacity is how many deliveries are processed at a time, and the memory for bodies
// that are being received.
type capacity struct {
	slots  chan struct{}
	bodies *bodyPool
}

func newIntake(cfg *Config) intake {
	free := func() capacity { return capacity{make(chan struct{}, cfg.MaxConcurrent), newBodyPool(cfg)} }
	return intake{
		cfg:      cfg,
		verifier: &Verifier{Keys: cfg.Keys, Headers: cfg.Headers, Tolerance: cfg.Tolerance, Now: cfg.Now},
		signed:   free(), unsigned: free(),
	}
}

// enter takes a place for a delivery, if one is free.
func (in *intake) enter(signed bool) (leave func(), free bool) {
	slots := in.unsigned.slots
	if signed {
		slots = in.signed.slots
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, true
	default:
		return nil, false
	}
}

// read reads the body of a request that may be a delivery. json reports whether the
// headers announce JSON.
func (in *intake) read(w http.ResponseWriter, r *http.Request, memory *bodyMemory) (body []byte, json bool, err error) {
	json = announcesJSON(r.Header)
	plausible, err := in.admit(w, r, json)
	if err != nil {
		return nil, json, err
	}
	memory.pool = in.unsigned.bodies
	if plausible {
		memory.pool = in.signed.bodies
	}
	body, err = in.readBody(w, r, memory)
	return body, json, err
}

// admit rejects a request whose body need not be read. plausible reports whether the
// signature headers have the form of valid ones.
func (in *intake) admit(w http.ResponseWriter, r *http.Request, json bool) (plausible bool, err error) {
	if in.needsSignature(r.Header) {
		var s stamp
		s, err = in.verifier.stampOf(r.Header)
		plausible = err == nil && in.verifier.plausible(s)
	}
	switch {
	case !in.secretPathMatches(r.URL.Path):
		err = errNotFound
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		err = errMethod
	case !json && !plausible:
		err = errMediaType
	case r.ContentLength > in.cfg.MaxBody:
		err = errTooLarge
	}
	if err != nil && r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // don't read the body
	}
	return plausible, err
}

// announcesJSON reports whether a body is JSON according to its headers, or has
// no content type. Proxies repeat these headers and add malformed parameters
// and charsets. With a valid signature the headers do not matter: the body is
// what the gateway signed, whatever they say.
func announcesJSON(h http.Header) bool {
	for encoding := range elements(h, "Content-Encoding") {
		switch strings.ToLower(encoding) {
		case "identity", "utf-8", "utf8":
		default:
			return false // a signature covers the bytes as they are, so a compressed body is rejected
		}
	}
	for media := range elements(h, "Content-Type") {
		media, _, _ = strings.Cut(media, ";")
		media = strings.ToLower(strings.TrimSpace(media))
		switch {
		case media == "application/json", media == "text/json":
		case strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"):
		default:
			return false
		}
	}
	return true
}

// elements yields the elements of a header, whether they are in one line or in
// several.
func elements(h http.Header, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range values(h, name) {
			for element := range strings.SplitSeq(line, ",") {
				if element = strings.TrimSpace(element); element != "" && !yield(element) {
					return
				}
			}
		}
	}
}

// secretPathMatches compares the last element of the path in constant time. Some
// proxies append a slash.
func (in *intake) secretPathMatches(path string) bool {
	want := in.cfg.SecretPath.Reveal()
	if want == "" {
		return true
	}
	path = strings.TrimRight(path, "/")
	got := path[strings.LastIndexByte(path, '/')+1:]
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// authenticate checks the signature, if the policy requires one or the
// delivery has one, before anything is read from the body.
func (in *intake) authenticate(d Delivery) (e parsed, err error) {
	signed, keyID := in.needsSignature(d.Header), ""
	if signed {
		if keyID, err = in.verifier.VerifiedBy(d.Header, d.Body); err != nil {
			return e, err
		}
	}
	if e, err = parse(d.Body); err != nil {
		return e, err
	}
	e.Signed, e.KeyID, e.Source = signed, keyID, SourceDelivery
	return e, nil
}

// needsSignature reports whether a delivery is rejected without a valid
// signature.
func (in *intake) needsSignature(header http.Header) bool {
	switch in.cfg.Trust {
	case RequireSignature:
		return true
	case SignatureOrReadBack:
		return in.verifier.Signed(header)
	default:
		return false
	}
}
