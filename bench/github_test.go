package bench_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/go-github/v84/github"
)

const githubID = "1700000000"

var issue = compact(`{
	"id":1700000000,"node_id":"MDU6SXNzdWUx","url":"https://api.example.com/repos/shop/orders/issues/1347",
	"repository_url":"https://api.example.com/repos/shop/orders",
	"labels_url":"https://api.example.com/repos/shop/orders/issues/1347/labels{/name}",
	"comments_url":"https://api.example.com/repos/shop/orders/issues/1347/comments",
	"html_url":"https://example.com/shop/orders/issues/1347","number":1347,"state":"open","title":"Order 2027-0117",
	"body":"Café em grãos, torra média, 500 g: 2 at 42.90. Filtro de papel nº 103: 1 at 8.90. Oficina de métodos de preparo (online): 1 at 60.00.",
	"user":{"login":"maria","id":1,"node_id":"MDQ6VXNlcjE=","avatar_url":"https://example.com/images/maria.gif",
		"url":"https://api.example.com/users/maria","html_url":"https://example.com/maria",
		"followers_url":"https://api.example.com/users/maria/followers","type":"User","site_admin":false},
	"assignee":{"login":"ana","id":2,"node_id":"MDQ6VXNlcjI=","avatar_url":"https://example.com/images/ana.gif",
		"url":"https://api.example.com/users/ana","type":"User","site_admin":false},
	"labels":[{"id":208045946,"node_id":"MDU6TGFiZWwyMDgwNDU5NDY=","url":"https://api.example.com/repos/shop/orders/labels/paid",
		"name":"paid","description":"The payment has arrived","color":"f29513","default":true}],
	"milestone":{"url":"https://api.example.com/repos/shop/orders/milestones/1","id":1002604,"number":1,"state":"open",
		"title":"v1.0","open_issues":4,"closed_issues":8,"created_at":"2027-01-01T12:00:00Z","updated_at":"2027-01-02T12:00:00Z"},
	"locked":false,"active_lock_reason":"none","comments":0,"closed_at":null,
	"created_at":"2027-01-04T12:00:00Z","updated_at":"2027-01-04T12:03:41Z","author_association":"COLLABORATOR"}`)

func githubBackend() *backend {
	return &backend{
		one:    []byte(issue),
		list:   func(n int) []byte { return []byte("[" + items(issue, n) + "]") },
		pageOf: queryPage("/repos/shop/orders/issues", "page", 1),
	}
}

func openGitHub(n network) (calls, error) {
	base, err := url.Parse(n.base + "/")
	if err != nil {
		return calls{}, err
	}
	client := github.NewClient(&http.Client{Transport: n.transport}).WithAuthToken("bench")
	client.BaseURL = base
	return calls{
		create: func(ctx context.Context) (string, error) {
			i, _, err := client.Issues.Create(ctx, "shop", "orders", issueRequest())
			return strconv.FormatInt(i.GetID(), 10), err
		},
		get: func(ctx context.Context) (string, error) {
			i, _, err := client.Issues.Get(ctx, "shop", "orders", 1347)
			return strconv.FormatInt(i.GetID(), 10), err
		},
		list: func(ctx context.Context) (n int, err error) {
			options := &github.IssueListByRepoOptions{ListOptions: github.ListOptions{PerPage: pageSize}}
			// The backend does not send the header with the next page, so the loop
			// counts pages.
			for options.ListOptions.Page = 1; options.ListOptions.Page <= pages; options.ListOptions.Page++ {
				page, _, err := client.Issues.ListByRepo(ctx, "shop", "orders", options)
				if err != nil {
					return n, err
				}
				for _, i := range page {
					n += int(min(i.GetID(), 1))
				}
			}
			return n, nil
		},
	}, nil
}

func issueRequest() *github.IssueRequest {
	return &github.IssueRequest{
		Title: new("Order 2027-0117"),
		Body: new("Maria Oliveira, maria.oliveira@example.com, 11987654321, born 1990-05-17. " +
			"Rua das Laranjeiras, 210, apto 31, Laranjeiras, Rio de Janeiro, RJ, 22240003, BR.\n\n" +
			"- Café em grãos, torra média, 500 g (CAFE-500): 2 at 42.90\n" +
			"- Filtro de papel nº 103 (FILTRO-103): 1 at 8.90\n" +
			"- Oficina de métodos de preparo (online): 1 at 60.00\n\n" +
			"To pay: 154.70 by Pix, reference order-2027-0117-k3x9qa, from 203.0.113.7. " +
			"Notify https://shop.example.com/webhooks/gateway/k3x9qa when it is paid, and send the parcel on the same day. " +
			"The buyer asked for whole beans, a gift wrap with a card that says \"Feliz aniversário, Joana\", and a call " +
			"before the delivery. Leave the parcel at the front desk if no one is at home. The workshop begins on Saturday " +
			"at ten; the link goes out by e-mail on Friday evening, together with the list of what to bring, the map and the name of the host."),
		Labels:    &[]string{"pix", "web", "verao"},
		Assignee:  new("maria"),
		Milestone: new(1),
	}
}
