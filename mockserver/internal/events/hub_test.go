package events_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

const key = "sk_test_mock"

func newHub() *events.Hub {
	return events.New(func() time.Time { return time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC) }, key)
}

func publish(h *events.Hub, n int) {
	for range n {
		h.Publish(key, events.Event{Type: events.TypeTimer, Timer: &events.TimerEvent{}})
	}
}

// read returns the numbers of the available events, and how many each TypeLost
// among them reports. It must run in a synctest bubble.
func read(t *testing.T, r *events.Reader) (seqs, lost []uint64) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		e, ok := r.Next(ctx)
		cancel()
		if !ok {
			return seqs, lost
		}
		if e.Lost != nil {
			lost = append(lost, e.Lost.Events)
			continue
		}
		seqs = append(seqs, e.Seq)
	}
}

func TestAHubWithoutReadersRecordsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		assert.False(t, h.Listening())
		assert.False(t, (*events.Hub)(nil).Listening())
		publish(h, 3)
		r := h.Read("", events.Filter{})
		defer r.Close()
		assert.True(t, h.Listening())
		seqs, lost := read(t, r)
		assert.Empty(t, seqs)
		assert.Empty(t, lost)
	})
}

func TestEveryReaderGetsEveryEventInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		first, second := h.Read("", events.Filter{}), h.Read("", events.Filter{})
		defer first.Close()
		publish(h, 2)
		seqs, _ := read(t, first)
		assert.Equal(t, []uint64{1, 2}, seqs)
		publish(h, 1)
		seqs, _ = read(t, first)
		assert.Equal(t, []uint64{3}, seqs)
		seqs, _ = read(t, second)
		assert.Equal(t, []uint64{1, 2, 3}, seqs)
		second.Close()
	})
}

func TestASlowReaderIsToldHowManyEventsItLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		r := h.Read("", events.Filter{Types: []string{events.TypeTimer}})
		defer r.Close()
		publish(h, 1234) // does not wait for the reader
		seqs, lost := read(t, r)
		assert.Equal(t, []uint64{234}, lost)
		require.Len(t, seqs, 1000)
		assert.Equal(t, uint64(235), seqs[0])
	})
}

func TestAReaderResumesWhereItStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		at := h.Position()
		publish(h, 2)
		r := h.Read(at, events.Filter{})
		seqs, lost := read(t, r)
		assert.Equal(t, []uint64{1, 2}, seqs)
		assert.Empty(t, lost)
		at = h.Position()
		r.Close()

		time.Sleep(50 * time.Second) // without a reader, but still recording
		publish(h, 1)
		r = h.Read(at, events.Filter{})
		seqs, lost = read(t, r)
		assert.Equal(t, []uint64{3}, seqs)
		assert.Empty(t, lost)
		r.Close()

		time.Sleep(61 * time.Second)
		publish(h, 1)
		assert.False(t, h.Listening(), "no reader came back")
		r = h.Read(at, events.Filter{})
		publish(h, 1)
		seqs, lost = read(t, r)
		assert.Len(t, seqs, 1)
		assert.Equal(t, []uint64{0}, lost, "the number of lost events is unknown")
		r.Close()
	})
}

func TestAnUnknownPositionReportsLostEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		defer h.Read("", events.Filter{}).Close()
		publish(h, 2)
		time.Sleep(time.Nanosecond)
		other := newHub()
		for _, after := range []string{"0", "x-1", "-", other.Position(), strings.Repeat("9", 100)} {
			r := h.Read(after, events.Filter{})
			seqs, lost := read(t, r)
			r.Close()
			assert.Equal(t, []uint64{1, 2}, seqs, after)
			assert.Equal(t, []uint64{0}, lost, after)
		}
	})
}

func TestFilters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		all := h.Read("", events.Filter{})
		defer all.Close()
		at := h.Position()
		h.Publish(key, events.Event{Type: events.TypeTimer, Timer: &events.TimerEvent{}})
		h.Publish("sk_test_other", events.Event{Type: events.TypeTimer, Timer: &events.TimerEvent{}})
		h.Publish("", events.Event{Type: events.TypeRequest, Request: &events.RequestEvent{}})
		h.Publish("", events.Event{Type: events.TypeClock, Clock: &events.ClockEvent{}})
		for name, tc := range map[string]struct {
			filter events.Filter
			want   []uint64
		}{
			"all":             {events.Filter{}, []uint64{1, 2, 3, 4}},
			"type":            {events.Filter{Types: []string{"timer", "clock"}}, []uint64{1, 2, 4}},
			"account":         {events.Filter{Account: "default"}, []uint64{1, 4}},
			"another account": {events.Filter{Account: h.Name("sk_test_other")}, []uint64{2, 4}},
			"both":            {events.Filter{Account: "default", Types: []string{"timer"}}, []uint64{1}},
			"a key":           {events.Filter{Account: key}, []uint64{4}},
		} {
			r := h.Read(at, tc.filter)
			seqs, _ := read(t, r)
			r.Close()
			assert.Equal(t, tc.want, seqs, name)
		}
	})
}

func TestReadersEndWithTheHub(t *testing.T) {
	t.Parallel()
	h := newHub()
	r := h.Read("", events.Filter{})
	publish(h, 1)
	h.Close()
	_, ok := r.Next(t.Context())
	assert.True(t, ok, "recorded events are still read")
	_, ok = r.Next(t.Context())
	assert.False(t, ok)
	r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok = h.Read("0", events.Filter{}).Next(ctx)
	assert.False(t, ok)
}

// The test fills every string of every event with secrets.
func TestEveryStringIsMasked(t *testing.T) {
	t.Parallel()
	const private = "12345678909"
	secrets := "sk_live_Zx81 pgct_once pgpm_again 4111 1111 1111 1111 5555555555554444 " + private
	h := newHub()
	r := h.Read("", events.Filter{})
	defer r.Close()
	of := reflect.TypeFor[events.Event]()
	filled := 0
	for f := range of.Fields() {
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		e := events.Event{Type: strings.ToLower(f.Name)}
		body := reflect.New(f.Type.Elem())
		reflect.ValueOf(&e).Elem().FieldByIndex(f.Index).Set(body)
		filled += fill(body.Elem(), secrets+strings.Repeat("é", 5000))
		if e.Reset != nil {
			e.Reset.Cause = "reset" // never contains client data
		}
		h.Publish("sk_test_secret", e, private, "x")
		got, ok := r.Next(t.Context())
		require.True(t, ok)
		text, err := respond.Marshal(got)
		require.NoError(t, err)
		for _, secret := range []string{"Zx81", "once", "again", "1111", "5555555555554444", private, "sk_test_secret"} {
			assert.NotContains(t, string(text), secret, f.Name)
		}
		assert.Less(t, len(text), 12_000, f.Name)
		assert.True(t, json.Valid(text))
		assert.NotContains(t, string(text), "\n")
	}
	assert.Greater(t, filled, 30)
}

// fill sets every string of a struct.
func fill(v reflect.Value, text string) (filled int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return 1
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fill(v.Index(0), text)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[respond.Stamp]() {
			return 0
		}
		for _, field := range v.Fields() {
			filled += fill(field, text)
		}
	default:
	}
	return filled
}

// Account names are stable and reveal nothing about the key.
func TestAccountNames(t *testing.T) {
	t.Parallel()
	h := newHub()
	assert.Equal(t, "default", h.Name(key))
	assert.Empty(t, h.Name(""))
	assert.Regexp(t, `^acct_[0-9a-f]{12}$`, h.Name("sk_test_other"))
	assert.Equal(t, h.Name("sk_test_other"), newHub().Name("sk_test_other"))
	assert.NotEqual(t, h.Name("sk_test_other"), h.Name("sk_test_another"))
}

func TestTheLatestEventOfAFilter(t *testing.T) {
	t.Parallel()
	h := newHub()
	assert.Empty(t, h.Latest(events.Filter{}), "nothing is recorded without readers")
	r := h.Read("", events.Filter{})
	defer r.Close()
	assert.Empty(t, h.Latest(events.Filter{}))
	h.Publish("sk_test_other", events.Event{Type: events.TypeTimer, Timer: &events.TimerEvent{}})
	other := h.Latest(events.Filter{})
	assert.Equal(t, h.Position(), other)
	assert.Empty(t, h.Latest(events.Filter{Account: "default"}))
	publish(h, 1)
	own := h.Latest(events.Filter{Account: "default"})
	assert.Equal(t, h.Position(), own)
	assert.Equal(t, other, h.Latest(events.Filter{Account: h.Name("sk_test_other")}))
	assert.Empty(t, h.Latest(events.Filter{Types: []string{events.TypeClock}}))
	publish(h, 2000)
	assert.Empty(t, h.Latest(events.Filter{Account: h.Name("sk_test_other")}), "it was replaced by later ones")
	assert.Equal(t, h.Position(), h.Latest(events.Filter{}))
}
