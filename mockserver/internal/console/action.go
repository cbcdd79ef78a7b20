package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/control"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
	"github.com/gateway-go/gateway/webhook"
)

// action is a form with one button: a call of the control plane, such as
// "POST /__mock/transactions/{id}/pay", or a request of the interface, such as
// "PUT /v2/transactions/{id}/refund".
type action struct {
	Call   string
	IDs    []string // for the call's path; with several the call is made for each
	Label  string
	Hint   string // what it does
	Fields []field
	Danger bool   // the action can't be undone
	Upload bool   // the body is a file
	Back   string // the page to return to; "" means this page
}

// field is a member of the call's body, or a query parameter: its name begins with one
// of the prefixes below. The name "body" is the whole body. An empty field is not sent.
type field struct {
	Name, Label, Value string

	Type        string // of the input: text, number, select, checkbox, textarea, hidden, datetime, password
	Options     []string
	Placeholder string
	Required    bool
	Min, Max    string
}

// The prefixes of the names of fields: how the text of a field is sent.
const (
	asText    = "s." // a string
	asNumber  = "n."
	asTrue    = "b." // true, whatever the text is
	asWords   = "l." // a list of the words
	asTime    = "t." // a UTC time, which browsers send without a zone
	asHeaders = "h." // an object of the lines "Name: value"
	asWritten = "x." // a string whose white space is kept
	inQuery   = "q." // a query parameter
)

// maxForm is the maximum length of a form, twice that of a control plane body, and
// maxUpload that of a form with a file, such as the snapshot of a large server.
const (
	maxForm   = 2 << 20
	maxUpload = 1 << 30
)

// act executes a form.
func (rq *request) act() {
	if rq.r.Method != http.MethodPost {
		rq.w.Header().Set("Allow", "POST")
		rq.fail(http.StatusMethodNotAllowed, "This address accepts forms only.")
		return
	}
	if err := rq.origin.Check(rq.r); err != nil {
		rq.fail(http.StatusForbidden, "A page from another origin can't control the gateway.")
		return
	}
	form, err := rq.form()
	if err != nil {
		rq.fail(http.StatusBadRequest, "The form can't be read: "+err.Error())
		return
	}
	token := form.Get("token")
	switch {
	case !rq.token.valid(token):
		rq.fail(http.StatusForbidden, "The form is from an earlier start of the gateway, or from somewhere else. Reload its page and try again.")
		return
	case !rq.token.take(token):
		rq.done(note{Text: "This form was already sent; it was not executed again."})
		return
	}
	calls, err := callsOf(form)
	if err != nil {
		rq.token.giveBack(token)
		rq.fail(http.StatusBadRequest, err.Error())
		return
	}
	var last result
	for i, call := range calls {
		last = rq.send(call)
		if last.Status >= http.StatusBadRequest || last.Status == 0 {
			if i == 0 {
				rq.token.giveBack(token)
			}
			break
		}
	}
	rq.report(form, last)
}

// form reads a form; a file in it becomes its body.
func (rq *request) form() (url.Values, error) {
	kind, _, _ := strings.Cut(rq.r.Header.Get("Content-Type"), ";")
	if kind != "multipart/form-data" {
		rq.r.Body = http.MaxBytesReader(rq.w, rq.r.Body, maxForm)
		err := rq.r.ParseForm()
		return rq.r.PostForm, err
	}
	rq.r.Body = http.MaxBytesReader(rq.w, rq.r.Body, maxUpload)
	if err := rq.r.ParseMultipartForm(maxForm); err != nil {
		return nil, err
	}
	defer func() { _ = rq.r.MultipartForm.RemoveAll() }()
	if files := rq.r.MultipartForm.File["body"]; len(files) == 1 {
		f, err := files[0].Open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		text, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		rq.r.PostForm.Set("body", string(text))
	}
	return rq.r.PostForm, nil
}

// report shows the result of a form: the page it was on, or the response itself
// if it failed or was requested.
func (rq *request) report(form url.Values, last result) {
	ok := last.Status >= http.StatusOK && last.Status < http.StatusBadRequest
	if ok && form.Get("show") == "" {
		n := note{Text: form.Get("label") + ": done.", Curl: last.Curl}
		if strings.HasPrefix(last.Call, http.MethodPost) {
			n.Link = last.Made
		}
		rq.done(n)
		return
	}
	status := http.StatusOK
	if !ok && form.Get("show") == "" {
		status = max(last.Status, http.StatusBadRequest)
	}
	rq.render(status, &view{Title: last.Title, Section: noSection, Template: "result", Data: last})
}

// done redirects to the form's page, with a message.
func (rq *request) done(n note) {
	to, err := url.Parse(rq.back())
	if err != nil {
		to = &url.URL{Path: rq.base}
	}
	q := to.Query()
	q.Set("note", rq.addNote(n))
	to.RawQuery = q.Encode()
	http.Redirect(rq.w, rq.r, to.String(), http.StatusSeeOther)
}

// back returns the page that a form names, if it is one of the console's.
func (rq *request) back() string {
	u, err := url.Parse(rq.r.PostForm.Get("back"))
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.Path != Prefix && !strings.HasPrefix(u.Path, Prefix+"/") {
		return rq.base
	}
	q := u.Query()
	q.Del("note")
	return (&url.URL{Path: u.Path, RawQuery: q.Encode()}).String()
}

// outgoing is one call of a form.
type outgoing struct {
	method, path string
	body         []byte
}

// callsOf returns the calls of a form, one for each id.
func callsOf(form url.Values) ([]outgoing, error) {
	method, path, _ := strings.Cut(form.Get("call"), " ")
	if method == "" || !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("the form must name a call such as POST /__mock/reset, not %q", form.Get("call"))
	}
	body, err := bodyOf(form)
	if err != nil {
		return nil, err
	}
	if q := queryOf(form); q != "" {
		path += "?" + q
	}
	before, rest, found := strings.Cut(path, "{")
	if !found {
		return []outgoing{{method, path, body}}, nil
	}
	_, after, _ := strings.Cut(rest, "}")
	var list []outgoing
	for _, id := range form["id"] {
		if id != "" {
			list = append(list, outgoing{method, before + url.PathEscape(id) + after, body})
		}
	}
	if len(list) == 0 {
		return nil, errors.New("nothing is selected")
	}
	return list, nil
}

// queryOf returns the query of a form's fields.
func queryOf(form url.Values) string {
	q := url.Values{}
	for name := range form {
		if parameter, found := strings.CutPrefix(name, inQuery); found && form.Get(name) != "" {
			q.Set(parameter, form.Get(name))
		}
	}
	return q.Encode()
}

// bodyOf returns the body of a form's fields; see [field].
func bodyOf(form url.Values) ([]byte, error) {
	if form.Has("body") {
		return []byte(strings.TrimSpace(form.Get("body"))), nil
	}
	members := map[string]jsontext.Value{}
	for name := range form {
		text := strings.TrimSpace(form.Get(name))
		if len(name) < len(asText) || name[1] != '.' || text == "" || strings.HasPrefix(name, inQuery) {
			continue
		}
		prefix, member := name[:len(asText)], name[len(asText):]
		value, err := valueOf(prefix, text, form[name])
		if err != nil {
			return nil, fmt.Errorf("%s %w", member, err)
		}
		members[member] = value
	}
	if len(members) == 0 {
		return nil, nil
	}
	return json.Marshal(members)
}

func valueOf(prefix, text string, all []string) (jsontext.Value, error) {
	switch prefix {
	case asNumber:
		value := jsontext.Value(text)
		if !value.IsValid() || value.Kind() != '0' {
			return nil, fmt.Errorf("must be a number, not %q", text)
		}
		return value, nil
	case asTrue:
		return jsontext.Value("true"), nil
	case asTime:
		if len(text) == len("2006-01-02T15:04") {
			text += ":00"
		}
		return json.Marshal(text + "Z")
	case asWords:
		words := []string{}
		for _, v := range all {
			words = append(words, strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(", \n\r\t", r) })...)
		}
		return json.Marshal(words)
	case asHeaders:
		return headersOf(text)
	case asWritten: // a browser sends CR LF for the end of a line
		return json.Marshal(strings.ReplaceAll(all[0], "\r\n", "\n"))
	default:
		return json.Marshal(text)
	}
}

// headersOf converts lines "Name: value" to an object.
func headersOf(text string) (jsontext.Value, error) {
	headers := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ":")
		if name == "" && !found {
			continue
		}
		if !found || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("must have lines such as Name: value, not %q", strings.TrimSpace(line))
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return json.Marshal(headers)
}

// indented formats JSON over several lines; other text is unchanged.
func indented(text string) string {
	value := jsontext.Value(text)
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return text
	}
	return string(value)
}

// result is a response to be shown.
type result struct {
	Title  string
	Status int // 0: the connection broke
	Detail string
	Call   string // what was sent
	Body   string // the response, masked
	Made   string // the page of the resource in the response; "" if there is none
	Curl   string
	Back   string

	Diagnosis *webhook.Diagnosis // the signature doctor's diagnosis
}

// send makes a call: the control plane's, or one of the interface.
func (rq *request) send(call outgoing) result {
	handler := rq.gateway
	if strings.HasPrefix(call.path, admin.Prefix+"/") {
		handler = rq.plane
	}
	out := result{Call: call.method + " " + call.path, Curl: rq.curl(call.method, call.path, rq.core.Journal.Masked(call.body)), Back: rq.back()}
	status, text, err := rq.roundTrip(handler, call.method, call.path, call.body)
	if err != nil {
		out.Title, out.Detail = "No response", "The connection broke: "+err.Error()
		return out
	}
	out.Status, out.Body = status, indented(rq.core.Journal.Masked(text))
	out.Title = fmt.Sprintf("%d %s", status, http.StatusText(status))
	if out.Body == "" {
		out.Body = fmt.Sprintf("(%d bytes that are not JSON)", len(text))
	}
	if status >= http.StatusBadRequest {
		out.Detail = detailOf(text)
	} else if out.Made = rq.created(call.path, text); call.path == diagnosePath {
		var diagnosed struct {
			Data *webhook.Diagnosis `json:"data"`
		}
		if err := json.Unmarshal(text, &diagnosed); err == nil {
			out.Diagnosis, out.Title = diagnosed.Data, "Diagnosis"
		}
	}
	return out
}

// detailOf returns the message in an error's body.
func detailOf(text []byte) string {
	var problem struct {
		Detail  string `json:"detail"`
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &problem) != nil {
		return ""
	}
	if problem.Detail != "" {
		return problem.Detail
	}
	return problem.Message
}

// roundTrip sends a request with the account's key to a handler.
func (rq *request) roundTrip(handler http.Handler, method, path string, body []byte) (status int, text []byte, err error) {
	return memory.Call(rq.r.Context(), handler, rq.key, method, path, body)
}

// longBody is the maximum length of a body in a command.
const longBody = 8 << 10

// curl returns a request as a command, with $KEY instead of the key.
func (rq *request) curl(method, path, body string) string {
	text := "curl"
	if method != http.MethodGet && (method != http.MethodPost || body == "") {
		text += " -X " + method
	}
	text += " " + shell("http://"+rq.r.Host+path) + ` -H "Authorization: Bearer $KEY"`
	switch {
	case len(body) > longBody || path == admin.Prefix+"/snapshot": // which also holds secrets
		text += " -H 'Content-Type: application/json' --data-binary @body.json"
	case body != "":
		text += " -H 'Content-Type: application/json' -d " + shell(body)
	}
	return text
}

// shell quotes a word for a POSIX shell.
func shell(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:{}", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// controls returns the buttons of a resource: those of the controls that its
// state allows.
func (rq *request) controls(resource, id string) (list []action) {
	for _, ctl := range control.All() {
		if ctl.Resource() != resource || !ctl.Offered(rq.core.Store, rq.key, id) {
			continue
		}
		a := action{
			Call: "POST " + admin.Prefix + "/" + ctl.Path(), IDs: []string{id}, Label: ctl.Label, Hint: ctl.Hint, Danger: ctl.Danger,
		}
		if n := ctl.Number; n.Member != "" {
			f := field{Name: asNumber + n.Member, Label: n.Label, Type: "number", Min: "0", Required: n.Default == 0}
			if !f.Required {
				f.Value = strconv.FormatInt(n.Default, 10)
			}
			a.Fields = []field{f}
		}
		list = append(list, a)
	}
	return list
}
