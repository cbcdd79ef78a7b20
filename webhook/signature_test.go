package webhook_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// The published vector.
const (
	vectorTime      = 1700000000
	vectorBody      = `{"id":"evt_1","event":"transaction","data":{"id":"tx_1","event_type":"transaction.paid"}}`
	vectorSignature = "sha256=2383a820c0197edf7e137a8aa980bae35abdfe9973055bdc7fdd40a54a18cf19"
)

var vectorKey = gateway.NewSecret("test_security_token")

func headers(timestamp, signature string) http.Header {
	h := http.Header{}
	h.Set(webhook.DefaultTimestampHeader, timestamp)
	h.Set(webhook.DefaultSignatureHeader, signature)
	return h
}

func verifierAt(at time.Time, keys ...webhook.SigningKey) *webhook.Verifier {
	return &webhook.Verifier{Keys: keys, Now: func() time.Time { return at }}
}

func TestSignReturnsThePublishedVector(t *testing.T) {
	t.Parallel()
	timestamp, signature := webhook.Sign(vectorKey, time.Unix(vectorTime, 0), []byte(vectorBody))
	assert.Equal(t, "1700000000", timestamp)
	assert.Equal(t, vectorSignature, signature)
}

func TestVerifyAcceptsTheWindowAndItsBoundary(t *testing.T) {
	t.Parallel()
	signed := headers(strconv.Itoa(vectorTime), vectorSignature)
	for offset, want := range map[time.Duration]error{
		0:                                      nil,
		300 * time.Second:                      nil,
		300*time.Second + 999*time.Millisecond: nil, // the timestamp has whole seconds only
		301 * time.Second:                      webhook.ErrStaleTimestamp,
		-300 * time.Second:                     nil,
		-301 * time.Second:                     webhook.ErrStaleTimestamp,
	} {
		v := verifierAt(time.Unix(vectorTime, 0).Add(offset), webhook.SigningKey{Key: vectorKey})
		assert.Equal(t, want, v.Verify(signed, []byte(vectorBody)), offset)
	}
}

func TestVerifyRejects(t *testing.T) {
	t.Parallel()
	now := strconv.Itoa(vectorTime)
	overlong := strings.Repeat("1", 40)
	signed := func(timestamp string) string { return webhook.SignText(vectorKey, timestamp, []byte(vectorBody)) }
	for name, tc := range map[string]struct {
		header http.Header
		body   string
		want   error
	}{
		"nothing":            {http.Header{}, vectorBody, webhook.ErrMissingSignature},
		"no timestamp":       {http.Header{webhook.DefaultSignatureHeader: {vectorSignature}}, vectorBody, webhook.ErrMissingSignature},
		"no signature":       {http.Header{webhook.DefaultTimestampHeader: {now}}, vectorBody, webhook.ErrMissingSignature},
		"another body":       {headers(now, vectorSignature), strings.Replace(vectorBody, "tx_1", "tx_2", 1), webhook.ErrInvalidSignature},
		"another time":       {headers("1700000001", vectorSignature), vectorBody, webhook.ErrInvalidSignature},
		"old and forged":     {headers("1500000000", vectorSignature), vectorBody, webhook.ErrInvalidSignature},
		"upper case":         {headers(now, strings.ToUpper(vectorSignature)), vectorBody, webhook.ErrInvalidSignature},
		"no prefix":          {headers(now, vectorSignature[7:]), vectorBody, webhook.ErrInvalidSignature},
		"prefix only":        {headers(now, "sha256="), vectorBody, webhook.ErrInvalidSignature},
		"blank":              {headers("", " "), vectorBody, webhook.ErrMissingSignature},
		"a blank timestamp":  {headers(" ", vectorSignature), vectorBody, webhook.ErrMissingSignature},
		"a blank signature":  {headers(now, ""), vectorBody, webhook.ErrMissingSignature},
		"two timestamps":     {http.Header{webhook.DefaultTimestampHeader: {now, "1700000001"}, webhook.DefaultSignatureHeader: {vectorSignature}}, vectorBody, webhook.ErrInvalidSignature},
		"two in one line":    {headers(now+", 1700000001", vectorSignature), vectorBody, webhook.ErrInvalidSignature},
		"two names":          {http.Header{"X-gateway-timestamp": {now}, "x-gateway-timestamp": {"1700000001"}, webhook.DefaultSignatureHeader: {vectorSignature}}, vectorBody, webhook.ErrInvalidSignature},
		"a signed comma":     {headers(now+","+now, signed(now+","+now)), vectorBody, webhook.ErrInvalidSignature},
		"a blank copy":       {http.Header{webhook.DefaultTimestampHeader: {"", now}, webhook.DefaultSignatureHeader: {vectorSignature, " "}}, vectorBody, nil},
		"not an integer":     {headers("1700000000.5", vectorSignature), vectorBody, webhook.ErrInvalidSignature},
		"separators only":    {headers(now, " , ,"), vectorBody, webhook.ErrInvalidSignature},
		"a word for a time":  {headers("yesterday", signed("yesterday")), vectorBody, webhook.ErrStaleTimestamp},
		"a sign in the time": {headers("+1700000000", signed("+1700000000")), vectorBody, webhook.ErrStaleTimestamp},
		"a very long time":   {headers(overlong, signed(overlong)), vectorBody, webhook.ErrStaleTimestamp},
		"the longest time":   {headers("999999999999", signed("999999999999")), vectorBody, webhook.ErrStaleTimestamp},
		"a digit too many":   {headers("1000000000000", signed("1000000000000")), vectorBody, webhook.ErrStaleTimestamp},
	} {
		v := verifierAt(time.Unix(vectorTime, 0), webhook.SigningKey{Key: vectorKey})
		assert.Equal(t, tc.want, v.Verify(tc.header, []byte(tc.body)), name)
	}
}

func TestVerifyDuringARotation(t *testing.T) {
	t.Parallel()
	at := time.Unix(vectorTime, 0)
	signed := headers(strconv.Itoa(vectorTime), vectorSignature)
	body := []byte(vectorBody)
	other := webhook.SigningKey{Key: gateway.NewSecret("the_new_one")}

	assert.NoError(t, verifierAt(at, other, webhook.SigningKey{Key: vectorKey}).Verify(signed, body))
	assert.NoError(t, verifierAt(at, other, webhook.SigningKey{Key: vectorKey, NotAfter: at}).Verify(signed, body))
	ended := webhook.SigningKey{Key: vectorKey, NotAfter: at.Add(-time.Nanosecond)}
	assert.Equal(t, webhook.ErrInvalidSignature, verifierAt(at, other, ended).Verify(signed, body))
	assert.Equal(t, webhook.ErrInvalidSignature, verifierAt(at).Verify(signed, body), "no key at all")
}

func TestOneOfSeveralSignaturesIsEnough(t *testing.T) {
	t.Parallel()
	other := "sha256=" + strings.Repeat("0", 64)
	v := verifierAt(time.Unix(vectorTime, 0), webhook.SigningKey{ID: "new", Key: gateway.NewSecret("the_new_one")}, webhook.SigningKey{ID: "old", Key: vectorKey})
	verify := func(signatures ...string) string {
		id, err := v.VerifiedBy(http.Header{
			webhook.DefaultTimestampHeader: {strconv.Itoa(vectorTime)}, webhook.DefaultSignatureHeader: signatures,
		}, []byte(vectorBody))
		if err != nil {
			return err.Error()
		}
		return id
	}
	var several []string
	for i := range 8 {
		several = append(several, "sha256="+strings.Repeat(strconv.Itoa(i), 64))
	}
	seven, eight := strings.Join(several[:7], ","), strings.Join(several, ",")
	for name, signatures := range map[string][]string{
		"alone":            {vectorSignature},
		"commas":           {other + "," + vectorSignature},
		"spaces":           {vectorSignature + " " + other},
		"both":             {other + ", " + vectorSignature},
		"repeated headers": {other, vectorSignature},
		"another scheme":   {"sha512=00, " + vectorSignature},
		"eight":            {seven + "," + vectorSignature},
		"a hundred copies": {strings.Repeat(other+",", 50) + strings.Repeat(vectorSignature+",", 50)},
	} {
		assert.Equal(t, "old", verify(signatures...), name)
	}
	new1 := webhook.SignText(gateway.NewSecret("the_new_one"), strconv.Itoa(vectorTime), []byte(vectorBody))
	assert.Equal(t, "new", verify(vectorSignature, new1), "the first key of the list that signed")
	for name, signatures := range map[string][]string{
		"none matches":     {other, other},
		"nine":             {eight + "," + vectorSignature},
		"nine headers":     append(several, vectorSignature),
		"another divider":  {other + ";" + vectorSignature},
		"cut by a divider": {vectorSignature[:20] + " " + vectorSignature[20:]},
	} {
		assert.Equal(t, webhook.ErrInvalidSignature.Error(), verify(signatures...), name)
	}
}

// TestEqualCopiesOfAHeaderAreOne has what proxies do to headers.
func TestEqualCopiesOfAHeaderAreOne(t *testing.T) {
	t.Parallel()
	now, at := strconv.Itoa(vectorTime), time.Unix(vectorTime, 0)
	v := verifierAt(at, webhook.SigningKey{Key: vectorKey})
	for name, h := range map[string]http.Header{
		"two lines":   {webhook.DefaultTimestampHeader: {now, now}, webhook.DefaultSignatureHeader: {vectorSignature, vectorSignature}},
		"joined":      headers(now+", "+now, vectorSignature+", "+vectorSignature),
		"blank lines": {webhook.DefaultTimestampHeader: {"", now}, webhook.DefaultSignatureHeader: {vectorSignature, " "}},
		"two spellings": {
			"X-gateway-timestamp": {now}, "x-gateway-timestamp": {now},
			"X-gateway-signature": {vectorSignature}, "x-gateway-signature": {vectorSignature},
		},
		"white space": headers(" "+now+" ", " "+vectorSignature+" "),
	} {
		require.NoError(t, v.Verify(h, []byte(vectorBody)), name)
		d := webhook.Diagnose(webhook.Delivery{Header: h, Body: []byte(vectorBody)}, v.Keys)
		for _, f := range d.Findings { // the vector is old
			assert.Equal(t, "timestamp_too_old", f.Cause, "%s: %s", name, d)
		}
	}
}

func TestTheToleranceCanBeSet(t *testing.T) {
	t.Parallel()
	signed := headers(strconv.Itoa(vectorTime), vectorSignature)
	for offset, want := range map[time.Duration]error{
		60 * time.Second: nil, -60 * time.Second: nil,
		61 * time.Second: webhook.ErrStaleTimestamp, -61 * time.Second: webhook.ErrStaleTimestamp,
	} {
		v := verifierAt(time.Unix(vectorTime, 0).Add(offset), webhook.SigningKey{Key: vectorKey})
		v.Tolerance = time.Minute
		assert.Equal(t, want, v.Verify(signed, []byte(vectorBody)), offset)

		cfg := signedConfig()
		cfg.Tolerance, cfg.Keys, cfg.Now = time.Minute, v.Keys, v.Now
		status := receiver(t, cfg).Receive(t.Context(), webhook.Delivery{Header: signed, Body: []byte(vectorBody)}).Status
		assert.Equal(t, want == nil, status == http.StatusOK, offset)
	}
}

func TestAnEmptyKeyVerifiesNothing(t *testing.T) {
	t.Parallel()
	at := time.Unix(vectorTime, 0)
	timestamp, signature := webhook.Sign(gateway.Secret{}, at, []byte(vectorBody))
	err := verifierAt(at, webhook.SigningKey{}).Verify(headers(timestamp, signature), []byte(vectorBody))
	assert.Equal(t, webhook.ErrInvalidSignature, err)
}

func TestHeaderNamesCanBeSet(t *testing.T) {
	t.Parallel()
	h := http.Header{"x-op-time": {strconv.Itoa(vectorTime)}, "X-Op-Sig": {vectorSignature}} // as in a cloud function's event
	v := verifierAt(time.Unix(vectorTime, 0), webhook.SigningKey{Key: vectorKey})
	v.Headers = webhook.HeaderNames{Timestamp: "X-OP-Time", Signature: "x-op-sig"}
	require.NoError(t, v.Verify(h, []byte(vectorBody)))
	assert.True(t, v.Signed(h))
	assert.False(t, v.Signed(headers("1", "2")))
}

// A map that was filled manually may have several spellings of a header.
func TestACanonicalHeaderWinsOverOtherSpellings(t *testing.T) {
	t.Parallel()
	v := verifierAt(time.Unix(vectorTime, 0), webhook.SigningKey{Key: vectorKey})
	for range 50 { // maps have no order
		h := headers(strconv.Itoa(vectorTime), vectorSignature)
		h["x-gateway-signature"] = []string{"forged"}
		h["X-GATEWAY-TIMESTAMP"] = []string{"1", "2"}
		require.NoError(t, v.Verify(h, []byte(vectorBody)))
	}
}

func TestEitherHeaderClaimsASignature(t *testing.T) {
	t.Parallel()
	var v webhook.Verifier
	assert.True(t, v.Signed(http.Header{webhook.DefaultSignatureHeader: {vectorSignature}}))
	assert.True(t, v.Signed(http.Header{webhook.DefaultTimestampHeader: {"1700000000"}}))
	assert.False(t, v.Signed(http.Header{webhook.DefaultSignatureHeader: {}}))
}

func TestVerifyWithTheWallClock(t *testing.T) {
	t.Parallel()
	timestamp, signature := webhook.Sign(vectorKey, time.Now(), []byte(vectorBody))
	signed := headers(timestamp, signature)
	require.NoError(t, webhook.Verify(signed, []byte(vectorBody), gateway.NewSecret("another"), vectorKey))
	assert.Equal(t, webhook.ErrInvalidSignature, webhook.Verify(signed, []byte(vectorBody), gateway.NewSecret("another")))
}

func FuzzVerify(f *testing.F) {
	f.Add("1700000000", vectorSignature, []byte(vectorBody))
	f.Add("", "", []byte(nil))
	f.Add("-1", "sha256=", []byte("{}"))
	f.Fuzz(func(t *testing.T, timestamp, signature string, body []byte) {
		v := verifierAt(time.Unix(vectorTime, 0), webhook.SigningKey{Key: vectorKey})
		err := v.Verify(http.Header{webhook.DefaultTimestampHeader: {timestamp}, webhook.DefaultSignatureHeader: {signature}}, body)
		if err == nil && (timestamp != "1700000000" || signature != vectorSignature || string(body) != vectorBody) {
			t.Fatal("accepted an unsigned body")
		}
	})
}
