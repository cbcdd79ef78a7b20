package spec_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

func TestMessagesNameTheRule(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rule                spec.Rule
		base, field, value  string
		violated, wantError string
	}{
		{spec.CheckoutLink, valueLink, "title", `""`, "title", "must have at least 1 character"},
		{spec.CheckoutLink, valueLink, "title", text(256), "title", "must have at most 255 characters"},
		{spec.SubscriptionUpdate, `{}`, "retry_offsets_days", `[]`, "retry_offsets_days", "must have at least 1 element"},
		{spec.SubscriptionUpdate, `{}`, "retry_offsets_days", list(11, "1"), "retry_offsets_days", "must have at most 10 elements"},
		{spec.SubscriptionUpdate, `{}`, "failurePolicy", `1`, "failurePolicy", "is the name used in responses: send failure_policy instead"},
		{spec.SubscriptionUpdate, `{}`, "retryOffsetsDays", `1`, "retryOffsetsDays", "is the name used in responses: send retry_offsets_days instead"},
		{spec.Customer, customerBase, "email", `"maria"`, "email", "must be an e-mail address"},
	} {
		found := check(t, edit(t, tc.base, tc.field, tc.value), tc.rule)
		require.Len(t, found, 1, tc.field)
		assert.Equal(t, tc.violated, found[0].Field)
		assert.Equal(t, tc.wantError, found[0].Message)
	}
}

func TestATimeMustBeAfterTheGatewaysCurrentTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, time.January, 4, 9, 0, 0, 0, time.FixedZone("", -3*60*60))
	for at, past := range map[string]bool{
		"2027-01-04T12:00:01Z": false, "2027-01-04T09:00:01-03:00": false, "2027-01-04T12:00:00Z": true, "2027-01-04T09:00:00-03:00": true, "2026-01-04T12:00:00Z": true,
	} {
		body := []byte(edit(t, cardSubscription, "trial_end", `"`+at+`"`))
		found, err := spec.Check(body, spec.Subscription, spec.Variant{Now: now})
		require.NoError(t, err)
		if !past {
			assert.Empty(t, found, at)
			continue
		}
		assert.Equal(t, []spec.Violation{{
			Field: "trial_end", Message: "must be after the gateway's current time, 2027-01-04T12:00:00Z", Code: spec.CodeInvalid,
		}}, found, at)
	}
	for _, wrong := range []string{`"soon"`, `7`} {
		found, err := spec.Check([]byte(edit(t, cardSubscription, "trial_end", wrong)), spec.Subscription, spec.Variant{Now: now})
		require.NoError(t, err)
		assert.Len(t, found, 1, wrong)
	}
}

func TestATimeMustFitRFC3339(t *testing.T) {
	t.Parallel()
	checkValues(t, spec.Subscription, spec.Variant{}, cardSubscription, []values{{
		field:    "trial_end",
		allowed:  []string{`"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"2027-01-04t12:00:00z"`},
		rejected: []rejection{{`"0000-01-01T00:00:00+01:00"`, spec.CodeInvalid}, {`"9999-12-31T23:59:59-01:00"`, spec.CodeInvalid}},
	}})
}

func TestEmailAddresses(t *testing.T) {
	t.Parallel()
	m := values{field: "email"}
	for _, email := range []string{"a@b", "Maria.Silva-1_2+x@Shop-9.example", "o'neil@example.com", "a/b@example.com", "josé@example.com"} {
		m.allowed = append(m.allowed, `"`+email+`"`)
	}
	for _, email := range []string{
		"", "@", "a@", "@b", ".a@b", "a.@b", "a..b@c", "a@.b", "a@b.", "a@b..c", "a[@b", "a:b@c", "a,b@c", "a b@c", "a@b c", "a@b@c", "<a@b>", "a@b,c@d",
		"(@)",
	} {
		m.rejected = append(m.rejected, rejection{`"` + email + `"`, spec.CodeInvalid})
	}
	checkValues(t, spec.Customer, spec.Variant{}, customerBase, []values{m})
}
