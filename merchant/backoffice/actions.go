package backoffice

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/operations"
)

// done returns what the decision that led to the page did.
func (v *visit) done() string {
	switch d := merchant.Decision(v.r.FormValue("done")); d {
	case merchant.Applied, merchant.SendAgain, merchant.Abandon, merchant.Accept, merchant.Retry, merchant.Dismiss:
		text := "The decision “" + words(d) + "” was stored."
		if n, err := strconv.Atoi(v.r.FormValue("n")); err == nil && n > 1 {
			text = fmt.Sprintf("%d decisions “%s” were stored.", n, words(d))
		}
		return text
	}
	return ""
}

// ended is the page of a problem that is not open.
func (v *visit) ended(status int) *view {
	text := "This problem is not open any more: someone has decided about it, or it has ended by itself."
	if status == http.StatusConflict {
		text += " Your decision changed nothing."
	}
	is := v.refuse(status, text)
	is.Title, is.Section = "The problem is not open any more", "problems"
	data := refusal{Text: text, Link: "problems", Label: "All open problems"}
	if order := v.r.FormValue("order"); order != "" {
		data.Link, data.Label = link("order", "id", order), "The story of order "+order+" says who decided and why"
	}
	is.Data = data
	return is
}

// decide carries out a person's decision about a problem.
func (v *visit) decide() (*view, error) {
	p, err := v.m.Problem(v.r.Context(), v.r.FormValue("id"))
	if errors.Is(err, merchant.ErrNotFound) {
		return v.ended(http.StatusConflict), nil
	}
	if err != nil {
		return nil, err
	}
	form := problem{
		Problem: p, Seen: p.Since.UnixMilli(), Decision: merchant.Decision(v.r.PostFormValue("decision")),
		Resource: strings.TrimSpace(v.r.PostFormValue("resource")), Why: v.r.PostFormValue("why"),
	}
	again := func(status int, failure string) (*view, error) {
		form.Failure = failure
		is := problemView(form)
		is.status = status
		return is, nil
	}
	if v.r.PostFormValue("seen") != strconv.FormatInt(form.Seen, 10) {
		form.Decision = ""
		return again(http.StatusConflict, "The problem has changed since you opened the page: someone has decided, and it came back. Nothing was changed: look at it once more.")
	}
	if !slices.Contains(p.Decisions(), form.Decision) {
		return again(http.StatusUnprocessableEntity, "Choose one of the decisions.")
	}
	r := merchant.Resolution{Decision: form.Decision, By: v.who, Why: form.Why}
	if form.Decision == merchant.Applied {
		r.ResourceID = form.Resource
	}
	err = v.decides.Resolve(v.r.Context(), p.ID, r)
	if errors.Is(err, merchant.ErrNotFound) {
		return v.ended(http.StatusConflict), nil
	}
	if status, text := rejected(err); text != "" {
		return again(status, text)
	}
	if err != nil { // the gateway can't be reached, for example
		v.log(err)
		return again(http.StatusBadGateway, "The decision could not be carried out, and the problem is still open. The reason is in the log.")
	}
	switch {
	case p.Order != "":
		return v.redirect(link("order", "id", p.Order, "book", p.Book, "done", form.Decision))
	case p.Subscription != "":
		return v.redirect(link("subscription", "id", p.Subscription, "book", p.Book, "done", form.Decision))
	}
	return v.redirect(link("problems", "done", form.Decision))
}

// rejected returns why a decision was not carried out, "" if the error is another one.
func rejected(err error) (status int, text string) {
	var invalid *gateway.ValidationError
	switch {
	case errors.As(err, &invalid):
		return http.StatusUnprocessableEntity, sentence(invalid)
	case errors.Is(err, operations.ErrMismatch):
		return http.StatusUnprocessableEntity, "The resource is not the one that was requested: " + masking.Text(err.Error())
	case errors.Is(err, merchant.ErrState):
		return http.StatusConflict, "The decision does not fit any more: " + masking.Text(err.Error())
	case errors.Is(err, gateway.ErrNotFound):
		return http.StatusUnprocessableEntity, "The gateway has no such resource."
	}
	return 0, ""
}

// decideLetters carries out a decision about several dead letters.
func (v *visit) decideLetters() (*view, error) {
	ids := v.r.PostForm["id"]
	form := deadLetters{Decision: merchant.Decision(v.r.PostFormValue("decision")), Why: v.r.PostFormValue("why"), Chosen: make(map[string]bool)}
	for _, id := range ids {
		form.Chosen[id] = true
	}
	again := func(status int, failure string) (*view, error) {
		form.Failure = failure
		is, err := v.lettersView(form)
		if err == nil {
			is.status = status
		}
		return is, err
	}
	switch {
	case len(ids) == 0:
		return again(http.StatusUnprocessableEntity, "Choose at least one event.")
	case len(ids) > letters:
		return again(http.StatusUnprocessableEntity, fmt.Sprintf("Choose at most %d events.", letters))
	case form.Decision != merchant.Retry && form.Decision != merchant.Dismiss:
		return again(http.StatusUnprocessableEntity, "Choose one of the decisions.")
	}
	decided, ended := 0, 0
	for _, id := range ids {
		p, err := v.m.Problem(v.r.Context(), id)
		if err == nil && p.Kind != merchant.ProblemEvent {
			return again(http.StatusUnprocessableEntity, "Only events can be decided on this page.")
		}
		if err == nil {
			err = v.decides.Resolve(v.r.Context(), id, merchant.Resolution{Decision: form.Decision, By: v.who, Why: form.Why})
		}
		if errors.Is(err, merchant.ErrNotFound) {
			ended++
			continue
		}
		if status, text := rejected(err); text != "" {
			return again(status, text)
		}
		if err != nil {
			return nil, err
		}
		decided++
	}
	if ended > 0 {
		return again(http.StatusConflict, fmt.Sprintf("Of the events that you chose, %d were not dead letters any more: someone has decided about them. The decision about the other %d was stored.", ended, decided))
	}
	return v.redirect(link("dead-letters", "account", v.r.FormValue("account"), "done", form.Decision, "n", decided))
}

// checkMonth compares a month with the gateway. That reads the gateway's list, page by
// page, so it is done once at a time, and only for persons who may decide.
func (v *visit) checkMonth() (*view, error) {
	data, err := v.chosenMonth()
	if err != nil {
		return nil, err
	}
	if !v.checking.TryLock() {
		return v.refuse(http.StatusConflict, "A month is being compared with the gateway right now. Wait until that is done."), nil
	}
	defer v.checking.Unlock()
	s, differences, err := v.decides.CheckMonth(v.r.Context(), data.Account, data.Month)
	switch {
	case errors.Is(err, gateway.ErrValidation), err != nil && v.r.Context().Err() != nil:
		return nil, err
	case err != nil:
		v.log(err)
		return v.refuse(http.StatusBadGateway, "The month could not be compared with the gateway. The reason is in the log."), nil
	}
	data.Checked = true
	data.Omitted = max(len(differences)-pageSize, 0)
	data.Differences = differences[:len(differences)-data.Omitted]
	return data.view(s), nil
}
