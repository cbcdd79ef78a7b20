// Package plans collects how PostgreSQL carried out the statements of a connection, for
// tests of the queues: their statements must be cheap whatever the planner believes about
// a table that is empty one minute and full the next.
package plans

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Log has the plan of each statement as it ran, which PostgreSQL's auto_explain reports.
type Log struct {
	mu   sync.Mutex
	seen []Plan
}

// Plan is a statement as it ran.
type Plan struct {
	Query string `json:"Query Text"`
	Root  Node   `json:"Plan"`
	JIT   any    `json:"JIT"` // nil unless the statement was compiled
}

// Node is a step of a plan. Rows and Removed are for one loop, Hit and Read are those of the
// node with its children in all loops.
type Node struct {
	Type      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name"`
	Index     string  `json:"Index Name"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Joined    float64 `json:"Rows Removed by Join Filter"`
	Hit       int     `json:"Shared Hit Blocks"`
	Read      int     `json:"Shared Read Blocks"`
	Children  []Node  `json:"Plans"`
}

// Buffers returns how many buffers the node touched.
func (n *Node) Buffers() int { return n.Hit + n.Read }

// Visited returns how many rows the node and its children read, also those that they did not
// return. An index scan may read more: rows that are dead.
func (n *Node) Visited() int {
	rows := int(n.Loops * (n.Rows + n.Filtered + n.Rechecked + n.Joined))
	for i := range n.Children {
		rows += n.Children[i].Visited()
	}
	return rows
}

// Scans reports whether the node or one of its children reads a table from the beginning to
// the end.
func (n *Node) Scans() bool {
	if n.Type == "Seq Scan" {
		return true
	}
	for i := range n.Children {
		if n.Children[i].Scans() {
			return true
		}
	}
	return false
}

// String returns the statement and a line for each node.
func (p *Plan) String() string {
	var b strings.Builder
	p.Root.describe(&b, "")
	return p.Query + "\n" + b.String()
}

func (n *Node) describe(b *strings.Builder, indent string) {
	_, _ = fmt.Fprintf(b, "%s%s %s %s: %g rows in %g loops, %g removed, %d buffers\n",
		indent, n.Type, n.Relation, n.Index, n.Rows, n.Loops, n.Filtered+n.Rechecked+n.Joined, n.Buffers())
	for i := range n.Children {
		n.Children[i].describe(b, indent+"  ")
	}
}

// Open returns a database with one connection, as a session that runs for long has it, and
// the plans of its statements.
func Open(name string) (*sql.DB, *Log, error) {
	cfg, err := pgx.ParseConfig(name)
	if err != nil {
		return nil, nil, err
	}
	var l Log
	cfg.OnNotice = l.notice
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"session_preload_libraries": "auto_explain", "client_min_messages": "log",
		"auto_explain.log_min_duration": "0", "auto_explain.log_format": "json", "auto_explain.log_timing": "off",
		"auto_explain.log_analyze": "on", "auto_explain.log_buffers": "on",
	})
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(1)
	return db, &l, nil
}

func (l *Log) notice(_ *pgconn.PgConn, n *pgconn.Notice) {
	_, text, found := strings.Cut(n.Message, "plan:\n")
	if !found {
		return
	}
	var one Plan
	if err := json.Unmarshal([]byte(text), &one); err != nil {
		one.Query = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, one)
}

// Take returns the statements since the last call.
func (l *Log) Take() []Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.seen
	l.seen = nil
	return seen
}
