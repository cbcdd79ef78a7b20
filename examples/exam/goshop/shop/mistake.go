package shop

import (
	"fmt"
	"slices"
	"strings"
)

// Mistake is a rule that the shop breaks, to see how the exam finds it.
type Mistake string

// The mistakes; ../../README.md says what each one is.
const (
	NoMistake         Mistake = ""
	NoDedup           Mistake = "no_dedup"
	MemoryDedup       Mistake = "memory_dedup"
	NewRef            Mistake = "new_ref"
	Unsigned          Mistake = "unsigned"
	SwallowErrors     Mistake = "swallow_errors"
	NoAmountCheck     Mistake = "no_amount_check"
	LateOverwrites    Mistake = "late_overwrites"
	TimeoutIsFailure  Mistake = "timeout_is_failure"
	RefundRepeated    Mistake = "refund_repeated"
	AnyRefundIsFull   Mistake = "any_refund_is_full"
	AcksUnknownOrder  Mistake = "acks_unknown_order"
	CheckThenAct      Mistake = "check_then_act"
	ChargebackIgnored Mistake = "chargeback_ignored"
	FloatCents        Mistake = "float_cents"
	DoubleClick       Mistake = "double_click"
)

// Mistakes lists all of them.
func Mistakes() []Mistake {
	return []Mistake{
		NoDedup, MemoryDedup, NewRef, Unsigned, SwallowErrors, NoAmountCheck, LateOverwrites, TimeoutIsFailure,
		RefundRepeated, AnyRefundIsFull, AcksUnknownOrder, CheckThenAct, ChargebackIgnored, FloatCents, DoubleClick,
	}
}

func (m Mistake) check() error {
	if m == NoMistake || slices.Contains(Mistakes(), m) {
		return nil
	}
	var names []string
	for _, known := range Mistakes() {
		names = append(names, string(known))
	}
	return fmt.Errorf("unknown mistake %q; there are: %s", string(m), strings.Join(names, " "))
}

// reconciles reports whether the shop reads its open orders again: reconciliation
// would hide some mistakes, so shops that make them have none.
func (m Mistake) reconciles() bool {
	return m != LateOverwrites && m != SwallowErrors && m != AcksUnknownOrder
}
