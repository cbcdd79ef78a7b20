package store

// Remembered returns how many bytes the replaced versions of resources take.
func (s *Store) Remembered() (bytes int64) {
	for _, key := range s.Accounts() {
		s.Account(key).View(func(d *Data) {
			bytes += d.Transactions.remembered + d.Customers.remembered + d.Transfers.remembered +
				d.Subscriptions.remembered + d.Links.remembered + d.Products.remembered + d.Sessions.remembered
		})
	}
	return bytes
}
