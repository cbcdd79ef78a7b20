package exam_test

import (
	"net/http"
	"path/filepath"

	"github.com/gateway-go/gateway/examples/exam/goshop/shop"
	"github.com/gateway-go/gateway/mockserver/exam"
)

// open starts the shop of the example with a mistake.
func open(mistake shop.Mistake) exam.StartFunc {
	return func(p *exam.Process) (http.Handler, error) {
		file, err := shop.OpenFile(filepath.Join(p.Dir(), "shop.jsonl"))
		if err != nil {
			return nil, err
		}
		p.OnExit(file.Close)
		s, err := shop.New(store{file, p}, p.Client(shop.ClientOptions()...), p.Secret(), mistake)
		if err != nil {
			return nil, err
		}
		return s.Handler(true), nil
	}
}

// store is a file at each of whose writes the shop may die. The shop holds a mutex there.
type store struct {
	*shop.File

	p *exam.Process
}

func (s store) Append(r shop.Record) error {
	s.p.CrashPoint()
	defer s.p.CrashPoint()
	return s.File.Append(r)
}
