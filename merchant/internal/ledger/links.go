package ledger

import (
	"context"

	"github.com/gateway-go/gateway/database"
)

// Link is a row of the table of checkout links.
type Link struct {
	Book    string
	ID      string
	Account string
	URL     string // "" until the gateway made it
	Record  string
}

// Link returns a link of a book, nil if there is none.
func (l Ledger) Link(ctx context.Context, book, id string) (*Link, error) {
	k := Link{Book: book, ID: id}
	found, err := l.first(ctx, `SELECT account, url, record FROM {s}gateway_links WHERE book = ? AND id = ?`, []any{book, id}, &k.Account, &k.URL, &k.Record)
	if err != nil || !found {
		return nil, err
	}
	return &k, nil
}

// LinksOf returns the links of an account, the oldest first.
func (l Ledger) LinksOf(ctx context.Context, account string) ([]Link, error) {
	return all(ctx, l, `SELECT book, id, account, url, record FROM {s}gateway_links WHERE account = ? ORDER BY created_at, id`, []any{account},
		func(row database.Scanner, k *Link) error {
			return row.Scan(&k.Book, &k.ID, &k.Account, &k.URL, &k.Record)
		})
}

// AddLink stores a link, unless its ID is taken.
func (l Ledger) AddLink(ctx context.Context, k *Link) error {
	_, err := l.s.Exec(ctx, `INSERT INTO {s}gateway_links (book, id, account, url, created_at, record) VALUES (?, ?, ?, '', {now}, ?) ON CONFLICT DO NOTHING`,
		k.Book, k.ID, k.Account, k.Record)
	return err
}

// SetURL stores where a link leads, unless that is known.
func (l Ledger) SetURL(ctx context.Context, book, id, url string) error {
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_links SET url = ? WHERE book = ? AND id = ? AND url = ''`, url, book, id)
	return err
}

// DropLink forgets a link of an account that was not made, and what a sale by it looks like.
func (l Ledger) DropLink(ctx context.Context, account, book, id string) error {
	n, err := l.s.Exec(ctx, `DELETE FROM {s}gateway_links WHERE book = ? AND id = ? AND url = ''`, book, id)
	if err == nil && n > 0 {
		_, err = l.s.Exec(ctx, `DELETE FROM {s}gateway_link_sales WHERE account = ? AND link = ?`, account, id)
	}
	return err
}

// AddSold stores what a sale by a link looks like.
func (l Ledger) AddSold(ctx context.Context, account, sold, link string) error {
	_, err := l.s.Exec(ctx, `INSERT INTO {s}gateway_link_sales (account, sold, link) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, account, sold, link)
	return err
}

// SoldBy returns links of an account whose sales look like one of these, at most two.
func (l Ledger) SoldBy(ctx context.Context, account string, sold ...string) ([]string, error) {
	in, args := list(sold)
	return all(ctx, l, `SELECT DISTINCT link FROM {s}gateway_link_sales WHERE account = ? AND sold IN `+in+` ORDER BY link LIMIT 2`,
		append([]any{account}, args...), func(row database.Scanner, id *string) error { return row.Scan(id) })
}
